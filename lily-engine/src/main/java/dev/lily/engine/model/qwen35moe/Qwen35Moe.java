package dev.lily.engine.model.qwen35moe;

import static dev.lily.engine.model.qwen35moe.PassObserver.Activation;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.checkpoint.Checkpoint;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.model.StatePool;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The Qwen3.5/3.6 mixture-of-experts text decoder: pre-norm layers of a token mixer (Gated
 * DeltaNet, every fourth one gated attention) and sparse experts, over plain residuals.
 */
public final class Qwen35Moe implements LanguageModel {
  private final Backend backend;
  private final DeviceState device;
  private final StatePool states;
  private final PassLimits limits;
  private final Qwen35Weights weights;
  private final float eps;

  private final Matrix embedding;
  private final List<DecoderLayer> layers;
  private final LogitsOperands head;
  private final Workspace workspace;

  private record DecoderLayer(
      Tensor inputGain, TokenMixer mixer, Tensor postAttentionGain, SparseExperts experts) {}

  private Qwen35Moe(
      Qwen35Config config,
      Qwen35Weights weights,
      StateLayout layout,
      PassLimits limits,
      Backend backend) {
    this.backend = backend;
    this.limits = limits;
    this.weights = weights;
    eps = config.rmsNormEps();
    workspace = Workspace.allocate(config, layout.vocabularySize(), limits, backend);
    embedding = weights.embedding();
    layers = layers(config, weights, workspace);
    head =
        new LogitsOperands(
            workspace.rows(),
            weights.finalGain(),
            eps,
            weights.lmHead(),
            workspace.normalizedRows(),
            workspace.logits());
    device = backend.openState(layout, shape(config), limits);
    states = new StatePool(device);
  }

  /**
   * Loads the weights and allocates states and scratch.
   *
   * @param layout from {@link #layout}
   * @throws dev.lily.engine.checkpoint.CheckpointException if a tensor is missing or wrong
   * @throws dev.lily.engine.backend.BackendException if the device refuses
   */
  public static Qwen35Moe open(
      Qwen35Config config,
      Checkpoint checkpoint,
      Backend backend,
      StateLayout layout,
      PassLimits limits) {
    Qwen35Weights weights = Qwen35Weights.load(config, checkpoint, backend);
    return new Qwen35Moe(config, weights, layout, limits, backend);
  }

  private static List<DecoderLayer> layers(
      Qwen35Config config, Qwen35Weights weights, Workspace workspace) {
    List<DecoderLayer> layers = new ArrayList<>();
    int attentionLayer = 0;
    int deltaLayer = 0;
    for (Qwen35Weights.Layer layer : weights.layers()) {
      TokenMixer mixer =
          switch (layer.mixer()) {
            case Qwen35Weights.Attention attention ->
                new GatedAttention(config, attention, attentionLayer++, workspace);
            case Qwen35Weights.Delta delta ->
                new GatedDeltaNet(config, delta, deltaLayer++, workspace);
          };
      layers.add(
          new DecoderLayer(
              layer.inputGain(),
              mixer,
              layer.postAttentionGain(),
              new SparseExperts(config, layer.experts(), workspace)));
    }
    return List.copyOf(layers);
  }

  /**
   * Sizes of the sequence state.
   *
   * @param vocabulary real tokens (the tokenizer's), at most the configuration's padded number
   */
  public static StateLayout layout(
      Qwen35Config config,
      int pageTokens,
      int numPages,
      int numSlots,
      int numSamplingSlots,
      int vocabulary) {
    return new StateLayout(
        config.numAttentionLayers(),
        config.numKeyValueHeads(),
        config.headDim(),
        pageTokens,
        numPages,
        config.numDeltaLayers(),
        config.linearConvKernelDim(),
        config.convDim(),
        config.linearNumValueHeads(),
        config.linearKeyHeadDim(),
        config.linearValueHeadDim(),
        numSlots,
        numSamplingSlots,
        vocabulary);
  }

  /** Dimensions from which a back end sizes its scratch. */
  public static ModelShape shape(Qwen35Config config) {
    return new ModelShape(
        config.hiddenSize(),
        config.numAttentionHeads(),
        config.headDim(),
        config.valueDim(),
        config.numExperts(),
        config.numExpertsPerToken(),
        config.moeIntermediateSize(),
        config.sharedExpertIntermediateSize(),
        config.vocabSize());
  }

  /** Bytes of the text weights, found without loading them. */
  public static long weightBytes(Checkpoint checkpoint) {
    return WeightReader.textBytes(checkpoint);
  }

  /** Bytes of activations and kernel scratch that {@link #open} would allocate. */
  public static long scratchBytes(
      Qwen35Config config, int vocabulary, StateLayout layout, PassLimits limits, Backend backend) {
    return Workspace.bytes(config, vocabulary, limits, backend)
        + backend.workspaceBytes(layout, shape(config), limits);
  }

  @Override
  public PendingPass forward(RowPlan plan) {
    PendingPass replayed = backend.replay(plan, device);
    return replayed != null ? replayed : forward(plan, PassObserver.NONE);
  }

  PendingPass forward(RowPlan plan, PassObserver observer) {
    ComputePass pass = backend.begin(plan, device);
    Tensor x = workspace.x();
    Tensor n = workspace.n();
    Tensor branch = workspace.branch();

    pass.embed(embedding, x);
    @Nullable Tensor residual = null;
    for (int i = 0; i < layers.size(); i++) {
      DecoderLayer layer = layers.get(i);
      pass.addNormalize(x, residual, layer.inputGain(), eps, n);
      observer.observe(pass, Activation.LAYER_INPUT, i, x);
      layer.mixer().forward(pass);
      observer.observe(pass, Activation.MIXER, i, branch);
      pass.addNormalize(x, branch, layer.postAttentionGain(), eps, n);
      layer.experts().forward(pass);
      observer.observe(pass, Activation.ROUTER_LOGITS, i, workspace.routerLogits());
      observer.observe(pass, Activation.EXPERTS, i, branch);
      residual = branch;
    }
    if (plan.numLogitRows() > 0) {
      pass.gatherRows(x, branch, workspace.rows());
      pass.logits(head);
      observer.observe(pass, Activation.FINAL_NORM, layers.size(), workspace.normalizedRows());
      observer.observe(pass, Activation.LOGITS, layers.size(), workspace.logits());
      pass.sample(workspace.logits());
    }
    return pass.submit();
  }

  @Override
  public PassLimits limits() {
    return limits;
  }

  @Override
  public StateLayout layout() {
    return device.layout();
  }

  @Override
  public StatePool states() {
    return states;
  }

  @Override
  public int maxPassesInFlight() {
    return backend.maxPassesInFlight();
  }

  /** Number of weights; a quantised one counts once. */
  public long parameters() {
    return weights.parameters();
  }

  /** Frees the states; back end and checkpoint belong to whoever opened them. */
  @Override
  public void close() {
    device.close();
  }
}
