package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.checkpoint.SafetensorsWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * The tiny model of {@code tiny_model_fixture.json}: weights follow from each tensor's name by
 * FNV-1a and splitmix64, so that the fixture stores none. Written in the raw Hugging Face layout,
 * or in the MLX layout, quantised or not.
 */
final class TinyCheckpoint {
  static final JsonNode FIXTURE = Goldens.json("tiny_model_fixture.json");
  private static final String HF = "model.language_model.";
  private static final int GROUP = 32;

  private TinyCheckpoint() {}

  /** Values of a tensor by its Hugging Face name, row-major. */
  static float[] generate(String name, int size) {
    long state = 0xcbf29ce484222325L;
    for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
      state = (state ^ (b & 0xff)) * 0x100000001b3L;
    }
    float amplitude = amplitude(name);
    float offset = name.endsWith("linear_attn.norm.weight") ? 1 : 0;
    float[] values = new float[size];
    for (int i = 0; i < size; i++) {
      state += 0x9E3779B97F4A7C15L;
      long z = state;
      z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
      z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
      z ^= z >>> 31;
      long u = (z >>> 40) % 129 - 64;
      values[i] = offset + u / 64f * amplitude;
    }
    return values;
  }

  private static float amplitude(String name) {
    if (name.endsWith("embed_tokens.weight")
        || name.endsWith("A_log")
        || name.endsWith("dt_bias")) {
      return 1;
    }
    if (name.endsWith("linear_attn.norm.weight")
        || name.endsWith("conv1d.weight")
        || name.endsWith("mlp.gate.weight")) {
      return 0.5f;
    }
    return 0.25f;
  }

  static Map<String, long[]> shapes() {
    Map<String, long[]> shapes = new LinkedHashMap<>();
    FIXTURE
        .path("tensors")
        .forEachEntry(
            (name, entry) ->
                shapes.put(
                    name,
                    Arrays.stream(Goldens.ints(entry.path("shape"))).asLongStream().toArray()));
    return shapes;
  }

  /** Raw Hugging Face layout: bf16, zero-centred gains, fused experts. */
  static void writeHuggingFace(Path directory) {
    SafetensorsWriter writer = new SafetensorsWriter();
    shapes().forEach((name, shape) -> writer.addBf16(name, generate(name, size(shape)), shape));
    writeConfig(directory, false);
    writer.write(directory.resolve("model.safetensors"));
  }

  /**
   * MLX layout with the same weights after quantisation.
   *
   * @param quantized packed codes, or the dequantised values as fp32
   */
  static void writeMlx(Path directory, boolean quantized) {
    SafetensorsWriter writer = new SafetensorsWriter();
    shapes().forEach((name, shape) -> addMlx(writer, name, shape, quantized));
    writeConfig(directory, quantized);
    writer.write(directory.resolve("model.safetensors"));
  }

  private static void addMlx(
      SafetensorsWriter writer, String name, long[] shape, boolean quantized) {
    float[] values = generate(name, size(shape));
    String mlx =
        name.startsWith(HF) ? name.replace(HF, "language_model.model.") : "language_model." + name;
    if (name.endsWith("conv1d.weight")) {
      writer.addF32(mlx, values, shape[0], shape[2], 1);
    } else if (name.endsWith("experts.gate_up_proj")) {
      int experts = (int) shape[0];
      int half = values.length / experts / 2;
      float[] gate = new float[values.length / 2];
      float[] up = new float[values.length / 2];
      for (int e = 0; e < experts; e++) {
        System.arraycopy(values, 2 * e * half, gate, e * half, half);
        System.arraycopy(values, (2 * e + 1) * half, up, e * half, half);
      }
      long[] halfShape = {shape[0], shape[1] / 2, shape[2]};
      String stack = mlx.replace("experts.gate_up_proj", "switch_mlp.");
      addMatrix(writer, stack + "gate_proj", gate, 4, quantized, halfShape);
      addMatrix(writer, stack + "up_proj", up, 4, quantized, halfShape);
    } else if (name.endsWith("experts.down_proj")) {
      String stack = mlx.replace("experts.down_proj", "switch_mlp.down_proj");
      addMatrix(writer, stack, values, 4, quantized, shape);
    } else if (shape.length == 1) {
      boolean zeroCentred = name.endsWith("norm.weight") && !name.contains("linear_attn");
      for (int i = 0; zeroCentred && i < values.length; i++) {
        values[i] += 1;
      }
      writer.addF32(mlx, values, shape);
    } else {
      boolean gate = name.endsWith("mlp.gate.weight") || name.endsWith("shared_expert_gate.weight");
      String module = mlx.substring(0, mlx.length() - ".weight".length());
      addMatrix(writer, module, values, gate ? 8 : 4, quantized, shape);
    }
  }

  private static void addMatrix(
      SafetensorsWriter writer,
      String module,
      float[] values,
      int bits,
      boolean quantized,
      long... shape) {
    if (quantized) {
      writer.addQuantized(module, values, GROUP, bits, shape);
    } else {
      float[] rounded = new SafetensorsWriter().addQuantized(module, values, GROUP, bits, shape);
      writer.addF32(module + ".weight", rounded, shape);
    }
  }

  private static int size(long[] shape) {
    return (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  static ObjectNode config(boolean quantized) {
    ObjectNode config = JsonMapper.shared().createObjectNode();
    config.put("model_type", "qwen3_5_moe");
    config.put("eos_token_id", 95);
    ObjectNode text = config.putObject("text_config");
    text.setAll((ObjectNode) FIXTURE.path("config").deepCopy());
    text.put("model_type", "qwen3_5_moe_text");
    text.put("max_position_embeddings", 4096);
    ObjectNode rope = text.putObject("rope_parameters");
    rope.put("rope_type", "default");
    rope.set("rope_theta", text.remove("rope_theta"));
    rope.set("partial_rotary_factor", text.remove("partial_rotary_factor"));
    if (quantized) {
      ObjectNode quantization = config.putObject("quantization");
      quantization.put("group_size", GROUP).put("bits", 4);
      List<String> gates = new ArrayList<>();
      for (int i = 0; i < text.path("num_hidden_layers").asInt(); i++) {
        gates.add("language_model.model.layers." + i + ".mlp.gate");
        gates.add("language_model.model.layers." + i + ".mlp.shared_expert_gate");
      }
      gates.forEach(gate -> quantization.putObject(gate).put("group_size", GROUP).put("bits", 8));
    }
    return config;
  }

  private static void writeConfig(Path directory, boolean quantized) {
    try {
      Files.writeString(directory.resolve("config.json"), config(quantized).toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
