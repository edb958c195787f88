package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.checkpoint.Checkpoint;
import java.util.ArrayList;
import java.util.List;

/**
 * The weights of a text decoder on a device. The only place that spells tensor names.
 *
 * @param embedding {@code [vocab, hidden]}
 * @param finalGain {@code [hidden]}
 * @param lmHead {@code [vocab, hidden]}
 * @param parameters number of weights
 */
record Qwen35Weights(
    Matrix embedding, List<Layer> layers, Tensor finalGain, Matrix lmHead, long parameters) {

  /** One decoder layer: a mixer over tokens, then experts over features. */
  record Layer(Tensor inputGain, Mixer mixer, Tensor postAttentionGain, Experts experts) {}

  /** What mixes tokens in a layer. */
  sealed interface Mixer {}

  /** Gated attention; {@code queryAndGate} interleaves both per head. */
  record Attention(
      Matrix queryAndGate,
      Matrix key,
      Matrix value,
      Matrix output,
      Tensor queryGain,
      Tensor keyGain)
      implements Mixer {}

  /** Gated DeltaNet. */
  record Delta(
      Matrix queryKeyValue,
      Matrix z,
      Matrix a,
      Matrix b,
      Matrix output,
      Tensor convWeight,
      Tensor aLog,
      Tensor dtBias,
      Tensor gain)
      implements Mixer {}

  /** Router, routed experts (stacks) and the shared expert with its gate. */
  record Experts(
      Matrix router,
      Matrix gate,
      Matrix up,
      Matrix down,
      Matrix sharedGate,
      Matrix sharedUp,
      Matrix sharedDown,
      Matrix sharedExpertGate) {}

  static Qwen35Weights load(Qwen35Config config, Checkpoint checkpoint, Backend backend) {
    String firstDelta = "layers." + config.isFullAttention().indexOf(false) + ".linear_attn.conv1d";
    WeightReader reader = new WeightReader(checkpoint, firstDelta);
    checkpoint.mappings().forEach(backend::mapWeights);
    return new Loader(config, reader, backend).load();
  }

  private record Loader(Qwen35Config config, WeightReader reader, Backend backend) {
    Qwen35Weights load() {
      int hidden = config.hiddenSize();
      Matrix embedding =
          backend.embedding(reader.matrix("embed_tokens", config.vocabSize(), hidden));
      List<Layer> layers = new ArrayList<>();
      for (int i = 0; i < config.numHiddenLayers(); i++) {
        layers.add(layer("layers." + i, config.isFullAttention().get(i)));
      }
      Tensor finalGain = gain("norm.weight", hidden);
      Matrix lmHead = backend.matrix(reader.lmHead(config.vocabSize(), hidden));
      reader.requireAllUsed();
      return new Qwen35Weights(
          embedding, List.copyOf(layers), finalGain, lmHead, reader.parameters());
    }

    private Layer layer(String layer, boolean fullAttention) {
      int hidden = config.hiddenSize();
      return new Layer(
          gain(layer + ".input_layernorm.weight", hidden),
          fullAttention ? attention(layer + ".self_attn") : delta(layer + ".linear_attn"),
          gain(layer + ".post_attention_layernorm.weight", hidden),
          experts(layer + ".mlp"));
    }

    private Attention attention(String name) {
      int hidden = config.hiddenSize();
      return new Attention(
          matrix(name + ".q_proj", 2 * config.attentionDim(), hidden),
          matrix(name + ".k_proj", config.keyValueDim(), hidden),
          matrix(name + ".v_proj", config.keyValueDim(), hidden),
          matrix(name + ".o_proj", hidden, config.attentionDim()),
          gain(name + ".q_norm.weight", config.headDim()),
          gain(name + ".k_norm.weight", config.headDim()));
    }

    private Delta delta(String name) {
      int hidden = config.hiddenSize();
      int heads = config.linearNumValueHeads();
      return new Delta(
          matrix(name + ".in_proj_qkv", config.convDim(), hidden),
          matrix(name + ".in_proj_z", config.valueDim(), hidden),
          matrix(name + ".in_proj_a", heads, hidden),
          matrix(name + ".in_proj_b", heads, hidden),
          matrix(name + ".out_proj", hidden, config.valueDim()),
          backend.constant(
              reader.convolution(
                  name + ".conv1d.weight", config.convDim(), config.linearConvKernelDim())),
          backend.constant(reader.vector(name + ".A_log", heads)),
          backend.constant(reader.vector(name + ".dt_bias", heads)),
          backend.constant(reader.vector(name + ".norm.weight", config.linearValueHeadDim())));
    }

    private Experts experts(String name) {
      int hidden = config.hiddenSize();
      int shared = config.sharedExpertIntermediateSize();
      return new Experts(
          matrix(name + ".gate", config.numExperts(), hidden),
          routed(name, "gate_proj", config.moeIntermediateSize(), hidden),
          routed(name, "up_proj", config.moeIntermediateSize(), hidden),
          routed(name, "down_proj", hidden, config.moeIntermediateSize()),
          matrix(name + ".shared_expert.gate_proj", shared, hidden),
          matrix(name + ".shared_expert.up_proj", shared, hidden),
          matrix(name + ".shared_expert.down_proj", hidden, shared),
          matrix(name + ".shared_expert_gate", 1, hidden));
    }

    private Matrix matrix(String module, int rows, int columns) {
      return backend.matrix(reader.matrix(module, rows, columns));
    }

    private Matrix routed(String mlp, String projection, int rows, int columns) {
      return backend.matrix(reader.experts(mlp, projection, config.numExperts(), rows, columns));
    }

    private Tensor gain(String name, int size) {
      return backend.constant(reader.normGain(name, size));
    }
  }
}
