package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.contract.TestMatrix.Format;
import dev.lily.engine.backend.contract.TinyTrace.Step;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Three random layers that use every verb: delta rule, attention, delta rule, each with experts.
 */
public final class TinyModel implements AutoCloseable {
  public static final int VOCABULARY = 100;
  public static final int PAGE_TOKENS = 16;
  static final int NUM_PAGES = 64;
  public static final PassLimits LIMITS = new PassLimits(64, 8, 64, 200);

  public static final int NUM_EXPERTS = 8;

  private static final int HIDDEN = 64;
  static final float EPS = 1e-6f;

  private final Variant variant;
  private final Values random;
  private final Backend backend;
  private final DeviceState state;
  private final Matrix embedding;
  private final Tensor x;
  private final Tensor n;
  private final Tensor branch;
  private final Tensor rows;
  private final Layer[] layers;
  private final LogitsOperands head;
  private final Gain lastGain;
  private final Weights lmHead;

  /**
   * Which weights, and how two steps that can turn a rounding into a large difference behave.
   *
   * @param numExpertsPerToken with {@link #NUM_EXPERTS} there is no choice that could tip
   * @param deltaEps of the norm after the delta rule: large against its outputs' mean square, the
   *     norm never magnifies an output that is nearly zero
   * @param headDim of the attention layer
   * @param down format of the experts' last matrices
   */
  public record Variant(
      long seed, int numExpertsPerToken, float deltaEps, int headDim, Format down) {
    /** As a checkpoint has them. */
    public static Variant of(long seed) {
      return new Variant(seed, 2, EPS, 32, Format.AFFINE_4);
    }

    /** Neither step magnifies anything. */
    public static Variant steady(long seed) {
      return new Variant(seed, NUM_EXPERTS, 0.1f, 32, Format.AFFINE_4);
    }

    /**
     * Heads that no block divides and experts of two formats, for a back end's plainest kernels.
     */
    public static Variant irregular(long seed) {
      return new Variant(seed, 2, EPS, 36, Format.AFFINE_8);
    }
  }

  /** A matrix, and the numbers it stands for. */
  record Weights(TestMatrix values, Matrix matrix) {}

  /** Gains, and where the back end has them. */
  record Gain(float[] values, Tensor tensor) {}

  /** A layer with a delta rule or attention; oracles compute from the operands' values. */
  record Layer(
      Gain mixerGain,
      List<Weights> inputWeights,
      StackedProjection inputs,
      @Nullable GatedDeltaOperands delta,
      Oracle.@Nullable Delta deltaOracle,
      @Nullable AttentionOperands attention,
      Oracle.@Nullable Attention attentionOracle,
      Tensor y,
      Weights output,
      Gain expertsGain,
      ExpertsOperands experts,
      Oracle.Experts expertsOracle) {}

  public TinyModel(Backend backend) {
    this(backend, Variant.of(2025));
  }

  public TinyModel(Backend backend, Variant variant) {
    this(backend, variant, KeyValueType.BF16);
  }

  public TinyModel(Backend backend, Variant variant, KeyValueType keyValueType) {
    this.backend = backend;
    this.variant = variant;
    random = new Values(variant.seed());
    embedding = weights(Format.AFFINE_4, 1, 128, HIDDEN).matrix();
    x = tensor(HIDDEN);
    n = tensor(HIDDEN);
    branch = tensor(HIDDEN);
    rows = tensor(HIDDEN);
    layers = new Layer[] {delta(0), attention(), delta(1)};
    lastGain = gain(HIDDEN);
    lmHead = weights(Format.AFFINE_4, 1, 128, HIDDEN);
    head =
        new LogitsOperands(
            rows, lastGain.tensor(), EPS, lmHead.matrix(), tensor(HIDDEN), tensor(VOCABULARY));
    state =
        backend.openState(
            new StateLayout(
                1,
                2,
                variant.headDim(),
                keyValueType,
                PAGE_TOKENS,
                NUM_PAGES,
                2,
                4,
                128,
                4,
                16,
                16,
                16,
                8,
                VOCABULARY),
            new ModelShape(
                HIDDEN,
                4,
                variant.headDim(),
                64,
                NUM_EXPERTS,
                variant.numExpertsPerToken(),
                64,
                64,
                VOCABULARY),
            LIMITS);
  }

  private Tensor tensor(int columns) {
    return backend.tensor(LIMITS.maxRows(), columns);
  }

  private Gain gain(int columns) {
    float[] values = random.uniform(columns, 0.5, 1.5);
    return new Gain(values, backend.constant(values));
  }

  private Weights weights(Format format, int numMatrices, int rows, int columns) {
    TestMatrix values = TestMatrix.random(random, format, numMatrices, rows, columns, 0.3);
    return new Weights(values, backend.matrix(values.source()));
  }

  private static StackedProjection stack(Tensor n, List<Weights> weights, Tensor... outputs) {
    return new StackedProjection(
        n, weights.stream().map(Weights::matrix).toList(), List.of(outputs));
  }

  private Layer delta(int layer) {
    Tensor qkv = tensor(128);
    Tensor z = tensor(64);
    Tensor a = tensor(4);
    Tensor b = tensor(4);
    Tensor y = tensor(64);
    List<Weights> inputs =
        List.of(
            weights(Format.AFFINE_4, 1, 128, HIDDEN),
            weights(Format.AFFINE_4, 1, 64, HIDDEN),
            weights(Format.AFFINE_4, 1, 4, HIDDEN),
            weights(Format.AFFINE_4, 1, 4, HIDDEN));
    Gain conv = constants(128 * 4, 0.7);
    Gain aLog = constants(4, 1);
    Gain dtBias = constants(4, 1);
    Gain gain = gain(16);
    float eps = variant.deltaEps();
    GatedDeltaOperands operands =
        new GatedDeltaOperands(
            layer,
            2,
            4,
            16,
            16,
            4,
            qkv,
            z,
            a,
            b,
            conv.tensor(),
            aLog.tensor(),
            dtBias.tensor(),
            gain.tensor(),
            eps,
            y);
    Oracle.Delta oracle =
        new Oracle.Delta(
            2, 4, 16, 16, 4, conv.values(), aLog.values(), dtBias.values(), gain.values(), eps);
    return layer(
        inputs, stack(n, inputs, qkv, z, a, b), operands, oracle, null, null, y, Format.AFFINE_4);
  }

  private Gain constants(int count, double limit) {
    float[] values = random.uniform(count, -limit, limit);
    return new Gain(values, backend.constant(values));
  }

  private Layer attention() {
    int headDim = variant.headDim();
    Tensor queryAndGate = tensor(8 * headDim);
    Tensor key = tensor(2 * headDim);
    Tensor value = tensor(2 * headDim);
    Tensor y = tensor(4 * headDim);
    List<Weights> inputs =
        List.of(
            weights(Format.AFFINE_4, 1, 8 * headDim, HIDDEN),
            weights(Format.BF16, 1, 2 * headDim, HIDDEN),
            weights(Format.F32, 1, 2 * headDim, HIDDEN));
    Gain queryGain = gain(headDim);
    Gain keyGain = gain(headDim);
    AttentionOperands operands =
        new AttentionOperands(
            0,
            4,
            2,
            headDim,
            8,
            10_000,
            queryAndGate,
            key,
            value,
            queryGain.tensor(),
            keyGain.tensor(),
            EPS,
            tensor(4 * headDim),
            tensor(4 * headDim),
            y);
    Oracle.Attention oracle =
        new Oracle.Attention(4, 2, headDim, 8, 10_000, queryGain.values(), keyGain.values(), EPS);
    return layer(
        inputs,
        stack(n, inputs, queryAndGate, key, value),
        null,
        null,
        operands,
        oracle,
        y,
        headDim % 16 == 0 ? Format.AFFINE_8 : Format.BF16);
  }

  private Layer layer(
      List<Weights> inputWeights,
      StackedProjection inputs,
      @Nullable GatedDeltaOperands delta,
      Oracle.@Nullable Delta deltaOracle,
      @Nullable AttentionOperands attention,
      Oracle.@Nullable Attention attentionOracle,
      Tensor y,
      Format outputFormat) {
    Gain mixerGain = gain(HIDDEN);
    Weights output = weights(outputFormat, 1, HIDDEN, y.columns());
    Gain expertsGain = gain(HIDDEN);
    Weights router = weights(Format.AFFINE_8, 1, NUM_EXPERTS, HIDDEN);
    Weights gate = weights(Format.AFFINE_4, NUM_EXPERTS, 64, HIDDEN);
    Weights up = weights(Format.AFFINE_4, NUM_EXPERTS, 64, HIDDEN);
    Weights down = weights(variant.down(), NUM_EXPERTS, HIDDEN, 64);
    Weights sharedGate = weights(Format.AFFINE_4, 1, 64, HIDDEN);
    Weights sharedUp = weights(Format.AFFINE_4, 1, 64, HIDDEN);
    Weights sharedDown = weights(Format.AFFINE_4, 1, HIDDEN, 64);
    Weights sharedExpertGate = weights(Format.AFFINE_8, 1, 1, HIDDEN);
    int perToken = variant.numExpertsPerToken();
    return new Layer(
        mixerGain,
        inputWeights,
        inputs,
        delta,
        deltaOracle,
        attention,
        attentionOracle,
        y,
        output,
        expertsGain,
        new ExpertsOperands(
            perToken,
            n,
            router.matrix(),
            gate.matrix(),
            up.matrix(),
            down.matrix(),
            sharedGate.matrix(),
            sharedUp.matrix(),
            sharedDown.matrix(),
            sharedExpertGate.matrix(),
            tensor(NUM_EXPERTS),
            branch),
        new Oracle.Experts(
            perToken,
            router.values(),
            gate.values(),
            up.values(),
            down.values(),
            sharedGate.values(),
            sharedUp.values(),
            sharedDown.values(),
            sharedExpertGate.values()));
  }

  /** What the model runs on. */
  public DeviceInfo device() {
    return backend.device();
  }

  public DeviceState state() {
    return state;
  }

  /**
   * Runs the plan, samples where it says so, and waits. Without logits a pass may be one that the
   * back end kept, as in a decode loop.
   *
   * @param logits null if not wanted
   */
  public PendingPass forward(RowPlan plan, float @Nullable [] logits) {
    PendingPass pass = logits == null ? replay(plan) : null;
    if (pass == null) {
      pass = record(plan, logits);
    }
    pass.await();
    return pass;
  }

  /** Submits a pass that the back end kept; null if it has none for this plan. */
  public @Nullable PendingPass replay(RowPlan plan) {
    return backend.replay(plan, state);
  }

  /** Records the pass verb by verb, and submits it. */
  public PendingPass record(RowPlan plan, float @Nullable [] logits) {
    return record(plan, logits, null);
  }

  /** As {@link #forward(RowPlan, float[])}, with the activations unless {@code trace} is null. */
  public PendingPass forward(RowPlan plan, float @Nullable [] logits, @Nullable TinyTrace trace) {
    PendingPass pass = record(plan, logits, trace);
    pass.await();
    return pass;
  }

  private PendingPass record(RowPlan plan, float @Nullable [] logits, @Nullable TinyTrace trace) {
    TinyTrace seen = trace == null ? TinyTrace.NONE : trace;
    ComputePass pass = backend.begin(plan, state);
    int count = plan.numRows();
    pass.embed(embedding, x);
    Tensor before = null;
    for (int i = 0; i < layers.length; i++) {
      Layer layer = layers[i];
      pass.addNormalize(x, before, layer.mixerGain.tensor(), EPS, n);
      pass.projectStack(layer.inputs);
      seen.copy(pass, count, i, Step.MIXER_INPUT, x);
      seen.copy(pass, count, i, layer.inputs.outputs());
      if (layer.delta != null) {
        pass.gatedDelta(layer.delta);
      } else {
        pass.prepareAttention(layer.attention);
        pass.attend(layer.attention);
      }
      seen.copy(pass, count, i, Step.MIXED, layer.y);
      pass.project(layer.y, layer.output.matrix(), branch);
      seen.copy(pass, count, i, Step.MIXER, branch);
      pass.addNormalize(x, branch, layer.expertsGain.tensor(), EPS, n);
      pass.experts(layer.experts);
      seen.copy(pass, count, i, Step.EXPERTS_INPUT, x);
      seen.copy(pass, count, i, Step.ROUTER_LOGITS, layer.experts.routerLogits());
      seen.copy(pass, count, i, Step.EXPERTS, branch);
      before = branch;
    }
    pass.gatherRows(x, branch, rows);
    pass.logits(head);
    seen.copy(pass, plan.numLogitRows(), layers.length, Step.LAST, rows);
    seen.copy(pass, plan.numLogitRows(), layers.length, Step.LOGITS, head.logits());
    pass.sample(head.logits());
    if (logits != null) {
      pass.copyOut(head.logits(), 0, plan.numLogitRows(), logits);
    }
    return pass.submit();
  }

  Layer[] layers() {
    return layers;
  }

  Gain lastGain() {
    return lastGain;
  }

  TestMatrix lmHead() {
    return lmHead.values();
  }

  @Override
  public void close() {
    state.close();
    backend.close();
  }
}
