package dev.lily.engine.checkpoint;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * A tiny, valid checkpoint of two shards and damaged or unusual variants of it. The tensors are no
 * runnable model: they exercise the reader, the index and the check of quantisation settings.
 */
final class BadCheckpoints {
  static final String SHARD_1 = "model-00001-of-00002.safetensors";
  static final String SHARD_2 = "model-00002-of-00002.safetensors";
  static final String INDEX = "model.safetensors.index.json";
  static final String CONFIG = "config.json";
  static final String GATE = "model.layers.0.mlp.gate";
  static final String UP_PROJ = "model.layers.0.mlp.up_proj";
  static final String NORM = "model.norm.weight";
  static final String TAIL = "model.tail.weight";

  private static final JsonMapper JSON = new JsonMapper();

  /** What opening a variant must do. */
  sealed interface Expectation {
    /** It opens; each of the texts occurs in some note, and there are as many notes as texts. */
    record Opens(List<String> notes) implements Expectation {}

    /** It is refused; each of the texts occurs in the message. */
    record Refused(Kind kind, List<String> texts) implements Expectation {}
  }

  /** A directory's files by name, and what must happen. */
  record Variant(String name, Map<String, byte[]> files, Expectation expectation) {
    /** Writes the files into a new directory below {@code parent}. */
    Path writeBelow(Path parent) throws IOException {
      Path directory = Files.createDirectory(parent.resolve(name));
      for (Map.Entry<String, byte[]> file : files.entrySet()) {
        Files.write(directory.resolve(file.getKey()), file.getValue());
      }
      return directory;
    }

    @Override
    public String toString() {
      return name;
    }
  }

  private final List<Variant> variants = new ArrayList<>();
  private final SafetensorsWriter first = firstShard();
  private final SafetensorsWriter second = secondShard();
  private final byte[] secondBytes = plain(second);
  private final byte[] secondHeader = bytes(second.header());

  private BadCheckpoints() {
    controls();
    truncations();
    foreignFilesAndLengths();
    duplicateKeys();
    offsetsShapesAndDtypes();
    indexes();
    quantizationSettings();
  }

  static Stream<Variant> variants() {
    return new BadCheckpoints().variants.stream();
  }

  static Variant variant(String name) {
    return variants().filter(it -> it.name.equals(name)).findFirst().orElseThrow();
  }

  /** Values {@code -8, -7.75, ...} of {@code embed_tokens}. */
  static float[] embeddings() {
    float[] values = new float[32];
    for (int i = 0; i < values.length; i++) {
      values[i] = -8 + i / 4f;
    }
    return values;
  }

  /** Codes {@code 0, 7, 14, ...} with other scales and offsets in each row, negative ones too. */
  static AffineGroups gate() {
    return groups(8, 7);
  }

  /** As {@link #gate}, four bits. */
  static AffineGroups upProj() {
    return groups(4, 5);
  }

  private static AffineGroups groups(int bits, int step) {
    int perWord = 32 / bits;
    int[] words = new int[8 * 64 / perWord];
    for (int i = 0; i < 8 * 64; i++) {
      words[i / perWord] |= (i * step & ((1 << bits) - 1)) << (bits * (i % perWord));
    }
    short[] scales = new short[8];
    short[] biases = new short[8];
    for (int row = 0; row < 8; row++) {
      scales[row] = Bf16.fromFloat((row % 2 == 0 ? 0.125f : -0.0625f) * (row + 1));
      biases[row] = Bf16.fromFloat(row - 4);
    }
    return new AffineGroups(bits, 64, words, scales, biases);
  }

  private static SafetensorsWriter firstShard() {
    return new SafetensorsWriter()
        .addF32("model.embed_tokens.weight", embeddings(), 4, 8)
        .addQuantized(GATE, gate(), 8, 64);
  }

  private static SafetensorsWriter secondShard() {
    float[] norm = new float[16];
    for (int i = 0; i < norm.length; i++) {
      norm[i] = 1 + i / 8f;
    }
    return new SafetensorsWriter()
        .addQuantized(UP_PROJ, upProj(), 8, 64)
        .addBf16(NORM, norm, 16)
        .add(TAIL, "U8", new byte[] {1, 2, 3}, 3);
  }

  static ObjectNode config() {
    ObjectNode config = JSON.createObjectNode().put("model_type", "container-test");
    ObjectNode quantization = config.putObject("quantization");
    quantization.put("bits", 4).put("group_size", 64);
    quantization.putObject(GATE).put("bits", 8).put("group_size", 64);
    return config;
  }

  private void controls() {
    opens("good", files());
    ObjectNode reversed = JSON.createObjectNode();
    List<String> names = List.copyOf(second.header().propertyNames());
    names.reversed().forEach(name -> reversed.set(name, second.header().get(name)));
    opens("good_unordered_header", withHeader(reversed.toString()));
    opens("good_header_padding", withHeader(second.header() + " ".repeat(13)));
    ObjectNode metadata = JSON.createObjectNode();
    metadata.putObject("__metadata__").put("format", "mlx");
    metadata.setAll(second.header());
    opens("good_metadata", withHeader(metadata.toString()));
    opens(
        "good_zero_size_tensor",
        withShard(second.copy().addF32("model.zero.weight", new float[0], 0, 4)));
    opens("good_scalar", withShard(second.copy().addF32("model.scalar", new float[] {2.5f})));
    SafetensorsWriter unaligned = new SafetensorsWriter().add(TAIL, "U8", new byte[] {1, 2, 3}, 3);
    opens("good_unaligned_start", withShard(unaligned.addAll(second.without(TAIL))));
  }

  private void truncations() {
    int length = secondBytes.length;
    int dataBegin = 8 + secondHeader.length;
    int dataBytes = length - dataBegin;
    for (Map.Entry<String, Integer> cut :
        Map.of(
                "truncated_tail_1_byte",
                length - 1,
                "truncated_tail_half",
                dataBegin + dataBytes / 2)
            .entrySet()) {
      refused(
          cut.getKey(),
          withBytes(Arrays.copyOf(secondBytes, cut.getValue())),
          SHARD_2,
          "asks for a file size of %d bytes".formatted(length),
          "actual file size is %d".formatted(cut.getValue()));
    }
    refused(
        "truncated_mid_header",
        withBytes(Arrays.copyOf(secondBytes, 8 + secondHeader.length / 2)),
        SHARD_2,
        "header of %d bytes does not fit".formatted(secondHeader.length));
    refused("empty_file", withBytes(new byte[0]), SHARD_2, "file size is 0 bytes");
    refused(
        "seven_bytes", withBytes(Arrays.copyOf(secondBytes, 7)), SHARD_2, "file size is 7 bytes");
  }

  private void foreignFilesAndLengths() {
    String lfs =
        "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 19500000000\n"
            .formatted("0".repeat(64));
    refused(
        "lfs_pointer",
        withBytes(ascii(lfs)),
        SHARD_2,
        "Git LFS pointer",
        "git lfs pull",
        "hf download");
    String html =
        "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in</body></html>\n";
    refused("html_login_page", withBytes(ascii(html)), SHARD_2, "web page", "hf download");
    refused("header_len_zero", withLength(0), SHARD_2, "header length 0 ");
    refused("header_len_2pow63", withLength(1L << 63), SHARD_2, "9223372036854775808");
    refused("header_len_all_ones", withLength(-1), SHARD_2, "18446744073709551615");
    refused("header_len_past_eof", withLength(secondBytes.length + 1), SHARD_2, "does not fit");
    refused("header_len_over_limit", withLength(200_000_000), SHARD_2, "200000000", "100000000");
    refused("header_not_json", withHeader("{not json}"), SHARD_2, "not JSON");
    refused(
        "header_bad_utf8",
        withBytes(
            SafetensorsWriter.assemble(
                9,
                new byte[] {'{', '"', 'a', (byte) 0xff, '"', ':', '1', '}', ' '},
                second.data())),
        SHARD_2,
        "not valid UTF-8");
    refused("header_is_array", withHeader("[]"), SHARD_2, "not a JSON object");
  }

  private void duplicateKeys() {
    String weight = UP_PROJ + ".weight";
    String header = second.header().toString();
    String entry = second.header().get(weight).toString();
    refused(
        "duplicate_tensor_key",
        withHeader(header.substring(0, header.length() - 1) + ",\"" + weight + "\":" + entry + "}"),
        SHARD_2,
        "duplicate key",
        weight);
    refused(
        "duplicate_field_in_entry",
        withHeader(header.replaceFirst("\"dtype\":\"U32\"", "\"dtype\":\"U32\",\"dtype\":\"F32\"")),
        SHARD_2,
        "duplicate key",
        weight,
        "dtype");
  }

  private void offsetsShapesAndDtypes() {
    String weight = UP_PROJ + ".weight";
    String scales = UP_PROJ + ".scales";
    String biases = UP_PROJ + ".biases";
    refused(
        "offsets_overlap",
        withEntry(
            biases, it -> it.set("data_offsets", second.header().get(scales).get("data_offsets"))),
        biases,
        "inside tensor '" + scales);
    ObjectNode headerWithHole = second.header();
    headerWithHole.remove(NORM);
    Map<String, byte[]> hole = withHeader(headerWithHole.toString());
    hole.put(INDEX, bytes(index(first, second.without(NORM))));
    refused("offsets_hole", hole, SHARD_2, "32 data bytes 288 to 320", "belong to no tensor");
    refused("offsets_reversed", withOffsets(scales, 272, 256), scales, "[272, 256]");
    refused(
        "offset_past_end",
        withEntry(
            TAIL,
            it -> {
              it.set("shape", array(4));
              it.set("data_offsets", array(320, 324));
            }),
        TAIL,
        "324",
        "323");
    refused("offset_negative", withOffsets(weight, -8, 248), weight, "-8");
    refused(
        "offset_fraction",
        withEntry(weight, it -> it.set("data_offsets", JSON.createArrayNode().add(0.5).add(256.5))),
        weight,
        "0.5");
    refused(
        "offset_string",
        withEntry(weight, it -> it.set("data_offsets", JSON.createArrayNode().add("0").add("256"))),
        weight,
        "the string '0'");
    refused("size_shape_mismatch", withShape(NORM, 17), NORM, "[17]", "takes 34 bytes", "span 32");
    refused("shape_overflow", withShape(NORM, 1L << 32, 1L << 32, 16), NORM, "product overflows");
    refused("shape_negative", withShape(NORM, -4, -4), NORM, "-4");
    unsupported(
        "unknown_dtype",
        withEntry(NORM, it -> it.put("dtype", "F8_WEIRD")),
        NORM,
        "dtype 'F8_WEIRD'");
    refused(
        "unknown_dtype_bad_begin",
        withEntry(
            NORM,
            it -> {
              it.put("dtype", "F8_WEIRD");
              it.set("data_offsets", array(1L << 62, 320));
            }),
        NORM,
        "4611686018427387904");
    refused(
        "trailing_bytes",
        withBytes(Arrays.copyOf(secondBytes, secondBytes.length + 16)),
        SHARD_2,
        "16 data bytes",
        "belong to no tensor");
  }

  private void indexes() {
    Map<String, byte[]> missingShard = files();
    missingShard.remove(SHARD_2);
    notFound("index_missing_shard", missingShard, INDEX, "1 of 2 shards are missing", SHARD_2);
    ObjectNode ghost = index(first, second);
    ((ObjectNode) ghost.get("weight_map")).put("model.ghost.weight", SHARD_2);
    refused("index_tensor_not_in_shard", withIndex(bytes(ghost)), INDEX, "model.ghost.weight");
    ObjectNode extra = index(first, second);
    ((ObjectNode) extra.get("weight_map")).remove(TAIL);
    opens("shard_tensor_not_in_index", withIndex(bytes(extra)), TAIL);
    ObjectNode total = index(first, second);
    ((ObjectNode) total.get("metadata")).put("total_size", 12345);
    opens("index_wrong_total_size", withIndex(bytes(total)), "total_size is 12345");
    byte[] index = bytes(index(first, second));
    refused("index_not_json", withIndex(Arrays.copyOf(index, 40)), INDEX, "not JSON");
    Map<String, byte[]> noIndex = files();
    noIndex.remove(INDEX);
    opens("no_index_two_shards", noIndex);
    Map<String, byte[]> incomplete = files();
    incomplete.remove(SHARD_2);
    incomplete.put(SHARD_2 + ".incomplete", Arrays.copyOf(secondBytes, secondBytes.length - 5));
    notFound("incomplete_download", incomplete, SHARD_2, SHARD_2 + ".incomplete");
  }

  private void quantizationSettings() {
    opens("quant_gate_8bit", files());
    ObjectNode noOverride = config();
    ((ObjectNode) noOverride.get("quantization")).remove(GATE);
    refused(
        "quant_override_missing",
        withConfig(noOverride),
        GATE + ".weight' is [8, 16]; expected [8, 8]",
        "8 bits in groups of 64",
        "override for this module missing");
    ObjectNode groups = config();
    ((ObjectNode) groups.get("quantization")).put("group_size", 32);
    refused(
        "quant_group_size_wrong",
        withConfig(groups),
        UP_PROJ + ".weight' is [8, 8]; expected [8, 4]",
        "4 bits in groups of 64");
    refused(
        "quant_scales_missing",
        withShard(second.without(UP_PROJ + ".scales")),
        "lacks '" + UP_PROJ + ".scales'");
    SafetensorsWriter halfBiases = new SafetensorsWriter();
    for (String name : second.names()) {
      JsonNode entry = second.header().get(name);
      halfBiases.add(
          name,
          name.equals(UP_PROJ + ".biases") ? "F16" : entry.get("dtype").asString(),
          second.data(name),
          entry.get("shape").valueStream().mapToLong(JsonNode::asLong).toArray());
    }
    refused(
        "quant_biases_wrong_dtype",
        withShard(halfBiases),
        UP_PROJ + ".biases' has dtype F16",
        UP_PROJ + ".scales' has BF16");
  }

  private void opens(String name, Map<String, byte[]> files, String... notes) {
    variants.add(new Variant(name, files, new Expectation.Opens(List.of(notes))));
  }

  private void refused(String name, Map<String, byte[]> files, String... texts) {
    variants.add(new Variant(name, files, new Expectation.Refused(Kind.CORRUPT, List.of(texts))));
  }

  private void unsupported(String name, Map<String, byte[]> files, String... texts) {
    variants.add(
        new Variant(name, files, new Expectation.Refused(Kind.UNSUPPORTED, List.of(texts))));
  }

  private void notFound(String name, Map<String, byte[]> files, String... texts) {
    variants.add(new Variant(name, files, new Expectation.Refused(Kind.NOT_FOUND, List.of(texts))));
  }

  private Map<String, byte[]> files() {
    Map<String, byte[]> files = new TreeMap<>();
    files.put(SHARD_1, plain(first));
    files.put(SHARD_2, secondBytes);
    files.put(INDEX, bytes(index(first, second)));
    files.put(CONFIG, bytes(config()));
    return files;
  }

  private Map<String, byte[]> with(String name, byte[] content) {
    Map<String, byte[]> files = files();
    files.put(name, content);
    return files;
  }

  private Map<String, byte[]> withBytes(byte[] shard) {
    return with(SHARD_2, shard);
  }

  private Map<String, byte[]> withIndex(byte[] index) {
    return with(INDEX, index);
  }

  private Map<String, byte[]> withConfig(ObjectNode config) {
    return with(CONFIG, bytes(config));
  }

  private Map<String, byte[]> withShard(SafetensorsWriter shard) {
    Map<String, byte[]> files = withBytes(plain(shard));
    files.put(INDEX, bytes(index(first, shard)));
    return files;
  }

  private Map<String, byte[]> withHeader(String header) {
    return withBytes(SafetensorsWriter.assemble(header, second.data()));
  }

  private Map<String, byte[]> withLength(long length) {
    return withBytes(SafetensorsWriter.assemble(length, secondHeader, second.data()));
  }

  private Map<String, byte[]> withEntry(String tensor, Consumer<ObjectNode> edit) {
    ObjectNode header = second.header();
    edit.accept((ObjectNode) header.get(tensor));
    return withHeader(header.toString());
  }

  private Map<String, byte[]> withOffsets(String tensor, long begin, long end) {
    return withEntry(tensor, it -> it.set("data_offsets", array(begin, end)));
  }

  private Map<String, byte[]> withShape(String tensor, long... shape) {
    return withEntry(tensor, it -> it.set("shape", array(shape)));
  }

  private static ArrayNode array(long... values) {
    ArrayNode array = JSON.createArrayNode();
    Arrays.stream(values).forEach(array::add);
    return array;
  }

  private static ObjectNode index(SafetensorsWriter first, SafetensorsWriter second) {
    Map<String, SafetensorsWriter> shards = new LinkedHashMap<>();
    shards.put(SHARD_1, first);
    shards.put(SHARD_2, second);
    return SafetensorsWriter.index(shards);
  }

  /** The file without padding, so that offsets in this class are plain to see. */
  private static byte[] plain(SafetensorsWriter shard) {
    return SafetensorsWriter.assemble(shard.header().toString(), shard.data());
  }

  private static byte[] bytes(JsonNode json) {
    return json.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
