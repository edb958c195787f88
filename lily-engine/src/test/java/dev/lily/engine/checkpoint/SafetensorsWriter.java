package dev.lily.engine.checkpoint;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * Writes safetensors files for tests, tensors in the order in which they were added. Files stay
 * small: everything is held in memory.
 */
public final class SafetensorsWriter {
  private static final JsonMapper JSON = new JsonMapper();

  private record Tensor(String dtype, long[] shape, byte[] data) {}

  private final Map<String, Tensor> tensors = new LinkedHashMap<>();

  /** Adds raw little-endian bytes; their number is not checked, so that tests can lie. */
  public SafetensorsWriter add(String name, String dtype, byte[] data, long... shape) {
    tensors.put(name, new Tensor(dtype, shape.clone(), data.clone()));
    return this;
  }

  /** Adds fp32 values as they are. */
  public SafetensorsWriter addF32(String name, float[] values, long... shape) {
    requireCount(name, values.length, shape);
    ByteBuffer bytes = littleEndian(values.length * 4L);
    for (float value : values) {
      bytes.putFloat(value);
    }
    return add(name, "F32", bytes.array(), shape);
  }

  /** Adds values rounded to bf16, ties to even. */
  public SafetensorsWriter addBf16(String name, float[] values, long... shape) {
    short[] patterns = new short[values.length];
    for (int i = 0; i < values.length; i++) {
      patterns[i] = Bf16.fromFloat(values[i]);
    }
    return addBf16(name, patterns, shape);
  }

  /** Adds bf16 bit patterns. */
  public SafetensorsWriter addBf16(String name, short[] patterns, long... shape) {
    requireCount(name, patterns.length, shape);
    ByteBuffer bytes = littleEndian(patterns.length * 2L);
    bytes.asShortBuffer().put(patterns);
    return add(name, "BF16", bytes.array(), shape);
  }

  /** Adds 32-bit words. */
  public SafetensorsWriter addU32(String name, int[] words, long... shape) {
    requireCount(name, words.length, shape);
    ByteBuffer bytes = littleEndian(words.length * 4L);
    bytes.asIntBuffer().put(words);
    return add(name, "U32", bytes.array(), shape);
  }

  /**
   * Quantises values and adds the triple {@code module.weight}, {@code module.scales}, {@code
   * module.biases}.
   *
   * @param shape logical shape, input features last
   * @return what a reader sees: the values after quantisation
   */
  public float[] addQuantized(
      String module, float[] values, int groupSize, int bits, long... shape) {
    requireCount(module, values.length, shape);
    AffineGroups groups = AffineQuantizer.quantize(values, groupSize, bits);
    addQuantized(module, groups, shape);
    return groups.dequantize();
  }

  /** Adds the triple of values that are quantised already. */
  public SafetensorsWriter addQuantized(String module, AffineGroups groups, long... shape) {
    requireCount(module, groups.size(), shape);
    long columns = shape[shape.length - 1];
    long[] packed = shape.clone();
    packed[shape.length - 1] = columns * groups.bits() / 32;
    long[] grouped = shape.clone();
    grouped[shape.length - 1] = columns / groups.groupSize();
    return addU32(module + ".weight", groups.words(), packed)
        .addBf16(module + ".scales", groups.scales(), grouped)
        .addBf16(module + ".biases", groups.biases(), grouped);
  }

  /** Adds all tensors of another writer. */
  public SafetensorsWriter addAll(SafetensorsWriter other) {
    tensors.putAll(other.tensors);
    return this;
  }

  /** A writer with the same tensors except one. */
  public SafetensorsWriter without(String name) {
    SafetensorsWriter copy = copy();
    copy.tensors.remove(name);
    return copy;
  }

  /** A writer with the same tensors. */
  public SafetensorsWriter copy() {
    return new SafetensorsWriter().addAll(this);
  }

  /** Names in file order. */
  public List<String> names() {
    return List.copyOf(tensors.keySet());
  }

  /** The bytes of one tensor. */
  public byte[] data(String name) {
    return tensors.get(name).data.clone();
  }

  /** The header as a JSON tree, entries in file order. */
  public ObjectNode header() {
    ObjectNode header = JSON.createObjectNode();
    long begin = 0;
    for (Map.Entry<String, Tensor> entry : tensors.entrySet()) {
      Tensor tensor = entry.getValue();
      ObjectNode node = header.putObject(entry.getKey());
      node.put("dtype", tensor.dtype);
      Arrays.stream(tensor.shape).forEach(node.putArray("shape")::add);
      long end = begin + tensor.data.length;
      node.putArray("data_offsets").add(begin).add(end);
      begin = end;
    }
    return header;
  }

  /** The data section. */
  public byte[] data() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    tensors.values().forEach(tensor -> bytes.writeBytes(tensor.data));
    return bytes.toByteArray();
  }

  /** The whole file; its header is padded so that the data section starts at a multiple of 8. */
  public byte[] toBytes() {
    String header = header().toString();
    int length = header.getBytes(StandardCharsets.UTF_8).length;
    return assemble(header + " ".repeat(-length & 7), data());
  }

  /** Writes the file. */
  public void write(Path file) {
    try {
      Files.write(file, toBytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Writes {@code model.safetensors.index.json} for shards by their file names. */
  public static void writeIndex(Path directory, Map<String, SafetensorsWriter> shards) {
    try {
      Files.writeString(
          directory.resolve("model.safetensors.index.json"), index(shards).toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The index of shards by their file names. */
  public static ObjectNode index(Map<String, SafetensorsWriter> shards) {
    ObjectNode index = JSON.createObjectNode();
    index
        .putObject("metadata")
        .put("total_size", shards.values().stream().mapToLong(shard -> shard.data().length).sum());
    ObjectNode weightMap = index.putObject("weight_map");
    shards.forEach((file, shard) -> shard.names().forEach(name -> weightMap.put(name, file)));
    return index;
  }

  /** A file of a given header and data section. */
  public static byte[] assemble(String header, byte[] data) {
    byte[] bytes = header.getBytes(StandardCharsets.UTF_8);
    return assemble(bytes.length, bytes, data);
  }

  /** A file whose length field may be wrong. */
  public static byte[] assemble(long headerLength, byte[] header, byte[] data) {
    return littleEndian(8L + header.length + data.length)
        .putLong(headerLength)
        .put(header)
        .put(data)
        .array();
  }

  private static ByteBuffer littleEndian(long bytes) {
    return ByteBuffer.allocate(Math.toIntExact(bytes)).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static void requireCount(String name, int values, long... shape) {
    long expected = Arrays.stream(shape).reduce(1, Math::multiplyExact);
    if (expected != values) {
      throw new IllegalArgumentException(
          "Tensor '%s' has %d values, its shape [%s] asks for %d"
              .formatted(
                  name,
                  values,
                  Arrays.stream(shape).mapToObj(Long::toString).collect(Collectors.joining(", ")),
                  expected));
    }
  }
}
