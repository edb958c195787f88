package dev.lily.engine.bench;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * Writes a checkpoint of the architecture with random 4-bit weights, for benchmarks at real layer
 * shapes without the real weights. Numbers are drawn so that activations neither vanish nor
 * explode.
 */
public final class RandomCheckpoint {
  private static final int GROUP = 64;
  private static final int INTERVAL = 4;

  /** Layer shapes. */
  enum Shape {
    /** Qwen3.6-35B-A3B. */
    QWEN36_35B_A3B(2048, 16, 2, 256, 16, 32, 128, 256, 8, 512, 248_320),
    /** Half its width. */
    MID(1024, 8, 2, 256, 8, 16, 128, 64, 8, 512, 65_536);

    final int hidden;
    final int heads;
    final int keyValueHeads;
    final int headDim;
    final int deltaKeyHeads;
    final int deltaValueHeads;
    final int deltaDim;
    final int experts;
    final int expertsPerToken;
    final int intermediate;
    final int vocabulary;

    Shape(
        int hidden,
        int heads,
        int keyValueHeads,
        int headDim,
        int deltaKeyHeads,
        int deltaValueHeads,
        int deltaDim,
        int experts,
        int expertsPerToken,
        int intermediate,
        int vocabulary) {
      this.hidden = hidden;
      this.heads = heads;
      this.keyValueHeads = keyValueHeads;
      this.headDim = headDim;
      this.deltaKeyHeads = deltaKeyHeads;
      this.deltaValueHeads = deltaValueHeads;
      this.deltaDim = deltaDim;
      this.experts = experts;
      this.expertsPerToken = expertsPerToken;
      this.intermediate = intermediate;
      this.vocabulary = vocabulary;
    }
  }

  private static final float RANDOM = Float.NaN;

  /**
   * A tensor to write.
   *
   * @param dtype {@code U32} for random codes, {@code BF16} otherwise
   * @param value of all elements; {@link #RANDOM} draws each from [-0.5, 0.5)
   */
  private record Tensor(String dtype, long[] shape, float value) {
    long bytes() {
      long bytes = dtype.equals("U32") ? 4 : 2;
      for (long dimension : shape) {
        bytes *= dimension;
      }
      return bytes;
    }
  }

  private final Shape shape;
  private final int layers;
  private final Map<String, Tensor> tensors = new LinkedHashMap<>();
  private final List<String> eightBit = new ArrayList<>();

  private RandomCheckpoint(Shape shape, int layers) {
    this.shape = shape;
    this.layers = layers;
  }

  /** Arguments: shape ({@code 35b} or {@code mid}), number of layers, directory. */
  public static void main(String[] arguments) throws IOException {
    if (arguments.length != 3) {
      System.err.println("Usage: RandomCheckpoint 35b|mid LAYERS DIRECTORY");
      System.exit(2);
    }
    Shape shape =
        switch (arguments[0]) {
          case "35b" -> Shape.QWEN36_35B_A3B;
          case "mid" -> Shape.MID;
          default -> throw new IllegalArgumentException("Unknown shape " + arguments[0]);
        };
    write(shape, Integer.parseInt(arguments[1]), Path.of(arguments[2]));
  }

  static void write(Shape shape, int layers, Path directory) throws IOException {
    if (layers < INTERVAL || layers % INTERVAL != 0) {
      throw new IllegalArgumentException(
          layers + " layers; it must be a multiple of " + INTERVAL + ", the attention interval");
    }
    Files.createDirectories(directory);
    RandomCheckpoint checkpoint = new RandomCheckpoint(shape, layers);
    checkpoint.describe();
    checkpoint.writeTensors(directory.resolve("model.safetensors"));
    Files.writeString(directory.resolve("config.json"), checkpoint.config().toPrettyString());
    Files.writeString(directory.resolve("tokenizer.json"), checkpoint.tokenizer().toString());
  }

  private void describe() {
    quantized("model.embed_tokens", 4, shape.vocabulary, shape.hidden);
    for (int i = 0; i < layers; i++) {
      String layer = "model.layers." + i;
      dense(layer + ".input_layernorm.weight", 1, shape.hidden);
      if ((i + 1) % INTERVAL == 0) {
        attention(layer + ".self_attn");
      } else {
        delta(layer + ".linear_attn");
      }
      dense(layer + ".post_attention_layernorm.weight", 1, shape.hidden);
      experts(layer + ".mlp");
    }
    dense("model.norm.weight", 1, shape.hidden);
    quantized("lm_head", 4, shape.vocabulary, shape.hidden);
  }

  private void attention(String name) {
    int width = shape.heads * shape.headDim;
    int keyValueWidth = shape.keyValueHeads * shape.headDim;
    quantized(name + ".q_proj", 4, 2L * width, shape.hidden);
    quantized(name + ".k_proj", 4, keyValueWidth, shape.hidden);
    quantized(name + ".v_proj", 4, keyValueWidth, shape.hidden);
    quantized(name + ".o_proj", 4, shape.hidden, width);
    dense(name + ".q_norm.weight", 1, shape.headDim);
    dense(name + ".k_norm.weight", 1, shape.headDim);
  }

  private void delta(String name) {
    int valueWidth = shape.deltaValueHeads * shape.deltaDim;
    int channels = 2 * shape.deltaKeyHeads * shape.deltaDim + valueWidth;
    quantized(name + ".in_proj_qkv", 4, channels, shape.hidden);
    quantized(name + ".in_proj_z", 4, valueWidth, shape.hidden);
    quantized(name + ".in_proj_a", 4, shape.deltaValueHeads, shape.hidden);
    quantized(name + ".in_proj_b", 4, shape.deltaValueHeads, shape.hidden);
    quantized(name + ".out_proj", 4, shape.hidden, valueWidth);
    dense(name + ".conv1d.weight", RANDOM, channels, 4, 1);
    dense(name + ".A_log", RANDOM, shape.deltaValueHeads);
    dense(name + ".dt_bias", RANDOM, shape.deltaValueHeads);
    dense(name + ".norm.weight", 1, shape.deltaDim);
  }

  private void experts(String name) {
    quantized(name + ".gate", 8, shape.experts, shape.hidden);
    quantized(name + ".shared_expert_gate", 8, 1, shape.hidden);
    for (String projection : List.of("gate_proj", "up_proj")) {
      quantized(
          name + ".switch_mlp." + projection, 4, shape.experts, shape.intermediate, shape.hidden);
      quantized(name + ".shared_expert." + projection, 4, shape.intermediate, shape.hidden);
    }
    quantized(name + ".switch_mlp.down_proj", 4, shape.experts, shape.hidden, shape.intermediate);
    quantized(name + ".shared_expert.down_proj", 4, shape.hidden, shape.intermediate);
  }

  private void quantized(String name, int bits, long... dimensions) {
    int columns = (int) dimensions[dimensions.length - 1];
    String module = "language_model." + name;
    long[] packed = dimensions.clone();
    packed[dimensions.length - 1] = (long) columns * bits / 32;
    long[] grouped = dimensions.clone();
    grouped[dimensions.length - 1] = columns / GROUP;
    // Codes are uniform: this gives a row zero mean and weights of variance 1 / columns.
    int codes = 1 << bits;
    float scale = (float) (Math.sqrt(12.0 / columns) / codes);
    tensors.put(module + ".weight", new Tensor("U32", packed, RANDOM));
    tensors.put(module + ".scales", new Tensor("BF16", grouped, scale));
    tensors.put(module + ".biases", new Tensor("BF16", grouped, -scale * (codes - 1) / 2));
    if (bits == 8) {
      eightBit.add(module);
    }
  }

  private void dense(String name, float value, long... dimensions) {
    tensors.put("language_model." + name, new Tensor("BF16", dimensions, value));
  }

  private void writeTensors(Path file) throws IOException {
    ObjectNode header = JsonMapper.shared().createObjectNode();
    long offset = 0;
    for (Map.Entry<String, Tensor> entry : tensors.entrySet()) {
      Tensor tensor = entry.getValue();
      ObjectNode node = header.putObject(entry.getKey());
      node.put("dtype", tensor.dtype);
      ArrayNode dimensions = node.putArray("shape");
      for (long dimension : tensor.shape) {
        dimensions.add(dimension);
      }
      node.putArray("data_offsets").add(offset).add(offset + tensor.bytes());
      offset += tensor.bytes();
    }
    byte[] json = header.toString().getBytes(StandardCharsets.UTF_8);
    SplittableRandom random = new SplittableRandom(1);
    try (OutputStream out = Files.newOutputStream(file)) {
      out.write(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(json.length).array());
      out.write(json);
      byte[] block = new byte[1 << 20];
      for (Tensor tensor : tensors.values()) {
        for (long written = 0; written < tensor.bytes(); ) {
          int count = (int) Math.min(block.length, tensor.bytes() - written);
          fill(tensor, random, block, count);
          out.write(block, 0, count);
          written += count;
        }
      }
    }
  }

  private static void fill(Tensor tensor, SplittableRandom random, byte[] block, int count) {
    if (tensor.dtype.equals("U32")) {
      random.nextBytes(block);
      return;
    }
    for (int i = 0; i < count; i += 2) {
      boolean constant = !Float.isNaN(tensor.value);
      short value = bf16(constant ? tensor.value : (float) random.nextDouble() - 0.5f);
      block[i] = (byte) value;
      block[i + 1] = (byte) (value >> 8);
    }
  }

  private static short bf16(float value) {
    return (short) (Float.floatToIntBits(value) >>> 16);
  }

  private ObjectNode config() {
    ObjectNode config = JsonMapper.shared().createObjectNode();
    config.put("model_type", "qwen3_5_moe");
    config.putArray("eos_token_id").add(shape.vocabulary - 1);
    ObjectNode quantization = config.putObject("quantization");
    quantization.put("group_size", GROUP).put("bits", 4).put("mode", "affine");
    eightBit.forEach(
        module -> quantization.putObject(module).put("group_size", GROUP).put("bits", 8));
    ObjectNode text = config.putObject("text_config");
    text.put("model_type", "qwen3_5_moe_text");
    text.put("hidden_size", shape.hidden);
    text.put("num_hidden_layers", layers);
    text.put("vocab_size", shape.vocabulary);
    text.put("rms_norm_eps", 1e-6);
    text.put("max_position_embeddings", 262_144);
    text.put("num_attention_heads", shape.heads);
    text.put("num_key_value_heads", shape.keyValueHeads);
    text.put("head_dim", shape.headDim);
    text.put("full_attention_interval", INTERVAL);
    text.put("linear_num_key_heads", shape.deltaKeyHeads);
    text.put("linear_num_value_heads", shape.deltaValueHeads);
    text.put("linear_key_head_dim", shape.deltaDim);
    text.put("linear_value_head_dim", shape.deltaDim);
    text.put("linear_conv_kernel_dim", 4);
    text.put("num_experts", shape.experts);
    text.put("num_experts_per_tok", shape.expertsPerToken);
    text.put("moe_intermediate_size", shape.intermediate);
    text.put("shared_expert_intermediate_size", shape.intermediate);
    text.putObject("rope_parameters")
        .put("rope_type", "default")
        .put("rope_theta", 10_000_000)
        .put("partial_rotary_factor", 0.25);
    return config;
  }

  /**
   * Bytes only; the last id of the vocabulary is its end token, so that all logits are computed.
   */
  private ObjectNode tokenizer() {
    ObjectNode tokenizer = JsonMapper.shared().createObjectNode();
    tokenizer
        .putArray("added_tokens")
        .addObject()
        .put("id", shape.vocabulary - 1)
        .put("content", "<|im_end|>")
        .put("special", true);
    tokenizer.putObject("normalizer").put("type", "NFC");
    ObjectNode pre = tokenizer.putObject("pre_tokenizer").put("type", "Sequence");
    ArrayNode steps = pre.putArray("pretokenizers");
    ObjectNode split = steps.addObject().put("type", "Split");
    split
        .putObject("pattern")
        .put(
            "Regex",
            "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                + " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
    split.put("behavior", "Isolated").put("invert", false);
    steps
        .addObject()
        .put("type", "ByteLevel")
        .put("add_prefix_space", false)
        .put("use_regex", false);
    tokenizer.putObject("decoder").put("type", "ByteLevel");
    ObjectNode model = tokenizer.putObject("model").put("type", "BPE");
    ObjectNode vocab = model.putObject("vocab");
    int id = 0;
    int remapped = 0;
    for (int b = 0; b < 256; b++) {
      boolean printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      vocab.put(String.valueOf((char) (printable ? b : 256 + remapped++)), id++);
    }
    model.putArray("merges");
    return tokenizer;
  }
}
