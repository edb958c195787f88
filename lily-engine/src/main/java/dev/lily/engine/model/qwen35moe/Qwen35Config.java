package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.checkpoint.CheckpointException;
import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * The dimensions of a {@code qwen3_5_moe} text decoder, in the words of {@code config.json}.
 *
 * @param isFullAttention by layer: gated attention where true, Gated DeltaNet where false
 * @param rotaryDim elements of a head that rotate: {@code headDim * partial_rotary_factor}
 * @param eosTokens ids that end an answer
 */
public record Qwen35Config(
    int hiddenSize,
    int numHiddenLayers,
    int vocabSize,
    float rmsNormEps,
    int maxPositionEmbeddings,
    int numAttentionHeads,
    int numKeyValueHeads,
    int headDim,
    int rotaryDim,
    double ropeTheta,
    List<Boolean> isFullAttention,
    int linearNumKeyHeads,
    int linearNumValueHeads,
    int linearKeyHeadDim,
    int linearValueHeadDim,
    int linearConvKernelDim,
    int numExperts,
    int numExpertsPerToken,
    int moeIntermediateSize,
    int sharedExpertIntermediateSize,
    List<Integer> eosTokens) {

  /** The {@code model_type} of checkpoints this graph runs. */
  public static final String MODEL_TYPE = "qwen3_5_moe";

  private static final int MAX_DIMENSION = 1 << 24;
  private static final int MAX_LAYERS = 1024;

  public Qwen35Config {
    isFullAttention = List.copyOf(isFullAttention);
    eosTokens = List.copyOf(eosTokens);
  }

  /** Channels of a DeltaNet layer's convolution: queries, keys and values. */
  public int convDim() {
    return 2 * linearNumKeyHeads * linearKeyHeadDim + valueDim();
  }

  /** Elements of all value heads of a DeltaNet layer. */
  public int valueDim() {
    return linearNumValueHeads * linearValueHeadDim;
  }

  /** Elements of all query heads of an attention layer. */
  public int attentionDim() {
    return numAttentionHeads * headDim;
  }

  /** Elements of all key heads of an attention layer. */
  public int keyValueDim() {
    return numKeyValueHeads * headDim;
  }

  public int numAttentionLayers() {
    return (int) isFullAttention.stream().filter(full -> full).count();
  }

  public int numDeltaLayers() {
    return numHiddenLayers - numAttentionLayers();
  }

  /**
   * Reads and validates {@code config.json}.
   *
   * @param config the file's content
   * @param file for messages
   * @throws CheckpointException naming the field, its value and the rule
   */
  public static Qwen35Config read(JsonNode config, Path file) {
    return new Reader(config, file).read();
  }

  private record Reader(JsonNode root, JsonNode text, Path file) {
    Reader(JsonNode root, Path file) {
      this(root, root.path("text_config"), file);
    }

    Qwen35Config read() {
      require(root, "model_type", MODEL_TYPE);
      if (!text.isObject()) {
        throw unsupported(
            "text_config", "is missing; the text decoder's dimensions are read from it");
      }
      require(text, "model_type", MODEL_TYPE + "_text");
      requireIfPresent("hidden_act", "silu");
      requireIfPresent("mamba_ssm_dtype", "float32");
      requireIfPresent("attention_bias", false);
      requireIfPresent("tie_word_embeddings", false);
      requireIfPresent("attn_output_gate", true);
      requireIfPresent("norm_topk_prob", true);
      JsonNode denseLayers = text.path("mlp_only_layers");
      if (!denseLayers.isMissingNode() && !denseLayers.isNull() && !denseLayers.isEmpty()) {
        throw unsupported(
            "mlp_only_layers", "is " + denseLayers + "; every layer must have experts");
      }

      int layers = count("num_hidden_layers", MAX_LAYERS);
      int heads = count("num_attention_heads");
      int keyValueHeads = count("num_key_value_heads");
      int headDim = count("head_dim");
      divides("num_key_value_heads", keyValueHeads, "num_attention_heads", heads);
      int keyHeads = count("linear_num_key_heads");
      int valueHeads = count("linear_num_value_heads");
      divides("linear_num_key_heads", keyHeads, "linear_num_value_heads", valueHeads);
      int experts = count("num_experts");
      int perToken = count("num_experts_per_tok");
      if (perToken > experts) {
        throw unsupported(
            "num_experts_per_tok", "is " + perToken + "; there are only " + experts + " experts");
      }
      int vocabSize = count("vocab_size");

      JsonNode rope = text.path("rope_parameters");
      String ropeType = rope.path("rope_type").asString(rope.path("type").asString("default"));
      if (!ropeType.equals("default")) {
        throw unsupported(
            "rope_parameters.rope_type", "is '" + ropeType + "'; only 'default' is supported");
      }
      double theta = number(rope, "rope_theta");
      double fraction = number(rope, "partial_rotary_factor");
      double rotary = headDim * fraction;
      int rotaryDim = (int) rotary;
      if (!(rotary >= 2 && rotary <= headDim) || rotary != rotaryDim || rotaryDim % 2 != 0) {
        throw unsupported(
            "rope_parameters.partial_rotary_factor",
            "is %s; times head_dim (%d) it must give an even number of elements"
                .formatted(fraction, headDim));
      }
      double eps = number(text, "rms_norm_eps");
      return new Qwen35Config(
          count("hidden_size"),
          layers,
          vocabSize,
          (float) eps,
          count("max_position_embeddings"),
          heads,
          keyValueHeads,
          headDim,
          rotaryDim,
          theta,
          layerTypes(layers),
          keyHeads,
          valueHeads,
          count("linear_key_head_dim"),
          count("linear_value_head_dim"),
          count("linear_conv_kernel_dim", 16),
          experts,
          perToken,
          count("moe_intermediate_size"),
          count("shared_expert_intermediate_size"),
          eosTokens(vocabSize));
    }

    private List<Boolean> layerTypes(int layers) {
      int interval = count("full_attention_interval");
      JsonNode types = text.path("layer_types");
      List<Boolean> full = new ArrayList<>(layers);
      if (types.isMissingNode()) {
        for (int i = 0; i < layers; i++) {
          full.add((i + 1) % interval == 0);
        }
        return full;
      }
      if (types.size() != layers) {
        throw unsupported(
            "layer_types", "has " + types.size() + " entries; num_hidden_layers is " + layers);
      }
      for (int i = 0; i < layers; i++) {
        String type = types.path(i).asString("");
        switch (type) {
          case "full_attention" -> full.add(true);
          case "linear_attention" -> full.add(false);
          default ->
              throw unsupported(
                  "layer_types[" + i + "]",
                  "is '" + type + "'; known are full_attention and linear_attention");
        }
        if (full.get(i) != ((i + 1) % interval == 0)) {
          throw unsupported(
              "layer_types[" + i + "]",
              "is '" + type + "', which contradicts full_attention_interval " + interval);
        }
      }
      return full;
    }

    /** The list beside {@code text_config} wins over the single id inside it. */
    private List<Integer> eosTokens(int vocabSize) {
      JsonNode ids = root.path("eos_token_id");
      if (ids.isMissingNode() || ids.isNull()) {
        ids = text.path("eos_token_id");
      }
      List<Integer> result = new ArrayList<>();
      for (JsonNode id : ids.isArray() ? ids.values() : List.of(ids)) {
        if (!id.isIntegralNumber() || id.asLong() < 0 || id.asLong() >= vocabSize) {
          throw unsupported(
              "eos_token_id",
              "is " + ids + "; it must hold token ids below vocab_size " + vocabSize);
        }
        result.add(id.asInt());
      }
      return result;
    }

    private void require(JsonNode node, String field, String expected) {
      String value = node.path(field).asString("");
      if (!value.equals(expected)) {
        throw unsupported(
            field,
            "is '" + value + "'; Lily runs '" + expected + "' (Qwen3.6-35B-A3B and its kin)");
      }
    }

    private void requireIfPresent(String field, Object expected) {
      JsonNode value = text.path(field);
      if (!value.isMissingNode()
          && !value.isNull()
          && !value.asString().equals(expected.toString())) {
        throw unsupported(field, "is " + value + "; only " + expected + " is supported");
      }
    }

    private int count(String field) {
      return count(field, MAX_DIMENSION);
    }

    private int count(String field, int max) {
      JsonNode value = text.path(field);
      if (!value.isIntegralNumber() || !value.canConvertToInt()) {
        throw unsupported(field, "is " + describe(value) + "; it must be a whole number");
      }
      int count = value.intValue();
      if (count < 1 || count > max) {
        throw unsupported(field, "is " + count + "; it must be between 1 and " + max);
      }
      return count;
    }

    private double number(JsonNode node, String field) {
      JsonNode value = node.path(field);
      double number = value.isNumber() ? value.doubleValue() : Double.NaN;
      if (!(number > 0) || Double.isInfinite(number)) {
        throw unsupported(field, "is " + describe(value) + "; it must be a positive number");
      }
      return number;
    }

    private void divides(String smallName, int small, String largeName, int large) {
      if (large % small != 0) {
        throw unsupported(
            largeName,
            "is %d; it must be a multiple of %s (%d)".formatted(large, smallName, small));
      }
    }

    private static String describe(JsonNode value) {
      return value.isMissingNode() ? "missing" : value.toString();
    }

    private CheckpointException unsupported(String field, String problem) {
      return new CheckpointException(Kind.UNSUPPORTED, file, field + " " + problem);
    }
  }
}
