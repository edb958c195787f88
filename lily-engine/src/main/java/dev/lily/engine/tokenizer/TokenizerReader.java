package dev.lily.engine.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.json.JsonFactory;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Reads the tokenizer files of a checkpoint, which are not trusted, into a {@link Tokenizer}. */
final class TokenizerReader {
  private static final int MAX_FILE_BYTES = 64 << 20;
  private static final int MAX_JSON_TOKENS = 4_000_000;
  private static final int MAX_JSON_DEPTH = 64;
  private static final int MAX_IDS = 1 << 20;
  private static final int MAX_ADDED_TOKENS = 4096;
  private static final int MAX_ADDED_TOKEN_LENGTH = 256;
  private static final int MAX_SHOWN = 200;

  private static final JsonMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder()
                          .maxTokenCount(MAX_JSON_TOKENS)
                          .maxNestingDepth(MAX_JSON_DEPTH)
                          .build())
                  .build())
          .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  private final String file;
  private final String configFile;
  private final Map<Integer, AddedToken> addedTokens = new LinkedHashMap<>();
  private final Map<String, Integer> addedIds = new HashMap<>();
  private final Map<String, Integer> ids = new HashMap<>();

  private TokenizerReader(Path file, Path configFile) {
    this.file = file.toString();
    this.configFile = configFile.toString();
  }

  static Tokenizer read(Path directory) {
    Path file = directory.resolve("tokenizer.json");
    Path configFile = directory.resolve("tokenizer_config.json");
    if (!Files.exists(file)) {
      throw new TokenizerException(
          file + " does not exist; a checkpoint needs it. Is the download complete?");
    }
    JsonNode root = parse(file);
    @Nullable JsonNode config = Files.exists(configFile) ? parse(configFile) : null;
    return new TokenizerReader(file, configFile).build(root, config);
  }

  private static JsonNode parse(Path file) {
    byte[] json;
    try (InputStream in = Files.newInputStream(file)) {
      json = in.readNBytes(MAX_FILE_BYTES + 1);
    } catch (IOException e) {
      throw new TokenizerException("Cannot read " + file + ": " + e, e);
    }
    if (json.length > MAX_FILE_BYTES) {
      throw new TokenizerException(
          "%s has more than %,d bytes, the limit for a tokenizer file. Is it the right file?"
              .formatted(file, MAX_FILE_BYTES));
    }
    JsonNode root;
    try {
      root = MAPPER.readTree(json);
    } catch (JacksonException e) {
      throw new TokenizerException(
          file
              + " is not sound JSON: "
              + shown(e.getOriginalMessage())
              + ". Is the download complete?",
          e);
    }
    if (!root.isObject()) {
      throw new TokenizerException(
          file + " holds no JSON object but " + shown(root) + ". Is it the right file?");
    }
    return root;
  }

  private Tokenizer build(JsonNode root, @Nullable JsonNode config) {
    TokenizerFormat.requireKnownSteps(root, file);
    readAddedTokens(root.path("added_tokens"));
    if (config != null) {
      TokenizerFormat.requireNothingPutIn(config, configFile);
      readAddedTokensDecoder(config.path("added_tokens_decoder"));
    }
    Vocabulary vocabulary = readVocabulary(root.at("/model/vocab"));
    MergeTable merges = readMerges(root.at("/model/merges"));
    return new Tokenizer(vocabulary, new AddedTokens(addedTokens.values()), merges, byteIds());
  }

  private void readAddedTokens(JsonNode tokens) {
    if (!tokens.isArray() && !isAbsent(tokens)) {
      throw damaged(file, "added_tokens is " + shown(tokens) + ", not an array");
    }
    for (JsonNode entry : tokens) {
      int id = id(file, "An entry of added_tokens", entry.path("id"));
      AddedToken token = addedToken(file, id, entry);
      if (addedTokens.containsKey(id)) {
        throw damaged(file, "added_tokens uses id " + id + " twice");
      }
      add(file, token);
    }
  }

  /** These have the last word, as in Hugging Face's library. */
  private void readAddedTokensDecoder(JsonNode tokens) {
    if (!tokens.isObject() && !isAbsent(tokens)) {
      throw damaged(configFile, "added_tokens_decoder is " + shown(tokens) + ", not an object");
    }
    for (Map.Entry<String, JsonNode> entry : tokens.properties()) {
      int id = parseId(entry.getKey());
      AddedToken token = addedToken(configFile, id, entry.getValue());
      AddedToken known = addedTokens.get(id);
      if (known != null && !known.content().equals(token.content())) {
        throw damaged(
            configFile,
            "added_tokens_decoder calls token %d %s, tokenizer.json calls it %s"
                .formatted(id, shown(token.content()), shown(known.content())));
      }
      add(configFile, token);
    }
  }

  private int parseId(String key) {
    int id = key.matches("0|[1-9][0-9]{0,6}") ? Integer.parseInt(key) : MAX_IDS;
    if (id >= MAX_IDS) {
      throw damaged(configFile, "added_tokens_decoder has the id " + shown(key) + "; " + idRule());
    }
    return id;
  }

  private AddedToken addedToken(String source, int id, JsonNode entry) {
    String content = entry.path("content").asString("");
    if (content.isEmpty() || content.length() > MAX_ADDED_TOKEN_LENGTH || !isWellFormed(content)) {
      throw damaged(
          source,
          "The text of added token %d is %s; it must be 1 to %d characters of well-formed text"
              .formatted(id, shown(entry.path("content")), MAX_ADDED_TOKEN_LENGTH));
    }
    for (String flag : new String[] {"lstrip", "rstrip", "single_word", "normalized"}) {
      if (entry.path(flag).asBoolean(false)) {
        throw new TokenizerException(
            "%s: Added token %s has the flag %s; Lily finds added tokens only as they stand in the"
                    .formatted(source, shown(content), flag)
                + " text. Is this the tokenizer of a qwen3_5_moe checkpoint?");
      }
    }
    return new AddedToken(id, content, entry.path("special").asBoolean(false));
  }

  private void add(String source, AddedToken token) {
    Integer other = addedIds.put(token.content(), token.id());
    if (other != null && other != token.id()) {
      throw damaged(
          source,
          "Added token %s has two ids, %d and %d"
              .formatted(shown(token.content()), other, token.id()));
    }
    addedTokens.put(token.id(), token);
    if (addedTokens.size() > MAX_ADDED_TOKENS) {
      throw damaged(source, "There are more than %,d added tokens".formatted(MAX_ADDED_TOKENS));
    }
  }

  private Vocabulary readVocabulary(JsonNode vocab) {
    if (!vocab.isObject()) {
      throw damaged(file, "model.vocab is " + shown(vocab) + ", not an object");
    }
    int size = 0;
    for (Map.Entry<String, JsonNode> entry : vocab.properties()) {
      int id = id(file, "Token " + shown(entry.getKey()), entry.getValue());
      ids.put(entry.getKey(), id);
      size = Math.max(size, id + 1);
    }
    for (int id : addedTokens.keySet()) {
      size = Math.max(size, id + 1);
    }
    byte[] @Nullable [] bytes = new byte[size][];
    BitSet special = new BitSet(size);
    for (AddedToken token : addedTokens.values()) {
      Integer other = ids.get(token.content());
      if (other != null && other != token.id()) {
        throw damaged(
            file,
            "Token %s has two ids, %d in model.vocab and %d as an added token"
                .formatted(shown(token.content()), other, token.id()));
      }
      bytes[token.id()] = token.content().getBytes(StandardCharsets.UTF_8);
      special.set(token.id(), token.special());
    }
    ids.forEach(
        (entry, id) -> {
          if (!addedIds.containsKey(entry)) {
            if (bytes[id] != null) {
              throw damaged(file, "Two tokens have id " + id + ", one is " + shown(entry));
            }
            bytes[id] = ordinaryBytes(entry, id);
          }
        });
    return new Vocabulary(bytes, special);
  }

  private byte[] ordinaryBytes(String entry, int id) {
    byte[] bytes = ByteAlphabet.bytes(entry);
    if (bytes == null || bytes.length == 0) {
      throw damaged(
          file,
          "Token %d is %s, which is not written in the byte-level alphabet"
              .formatted(id, shown(entry)));
    }
    return bytes;
  }

  private int[] byteIds() {
    int[] byteIds = new int[256];
    for (int b = 0; b < byteIds.length; b++) {
      Integer id = ids.get(Character.toString(ByteAlphabet.character(b)));
      if (id == null) {
        throw damaged(
            file, "model.vocab has no token for byte 0x%02X; it needs all 256".formatted(b));
      }
      byteIds[b] = id;
    }
    return byteIds;
  }

  private MergeTable readMerges(JsonNode merges) {
    if (!merges.isArray()) {
      throw damaged(file, "model.merges is " + shown(merges) + ", not an array");
    }
    int[] left = new int[merges.size()];
    int[] right = new int[merges.size()];
    int[] merged = new int[merges.size()];
    int rank = 0;
    for (JsonNode merge : merges) {
      String[] parts = parts(merge, rank);
      left[rank] = mergeId(parts[0], merge, rank);
      right[rank] = mergeId(parts[1], merge, rank);
      merged[rank] = mergeId(parts[0] + parts[1], merge, rank);
      rank++;
    }
    try {
      return new MergeTable(left, right, merged);
    } catch (TokenizerException e) {
      throw new TokenizerException(file + ": " + e.getMessage(), e);
    }
  }

  /** A merge is {@code ["left", "right"]}, in older files {@code "left right"}. */
  private String[] parts(JsonNode merge, int rank) {
    if (merge.isString()) {
      String[] parts = merge.stringValue().split(" ", -1);
      if (parts.length == 2) {
        return parts;
      }
    } else if (merge.size() == 2 && merge.path(0).isString() && merge.path(1).isString()) {
      return new String[] {merge.path(0).stringValue(), merge.path(1).stringValue()};
    }
    throw damaged(file, "Merge %d is %s, not two tokens".formatted(rank, shown(merge)));
  }

  private int mergeId(String token, JsonNode merge, int rank) {
    Integer id = ids.get(token);
    if (id == null) {
      throw damaged(
          file,
          "Merge %d is %s, but model.vocab has no token %s"
              .formatted(rank, shown(merge), shown(token)));
    }
    return id;
  }

  private static int id(String source, String what, JsonNode value) {
    if (!value.isIntegralNumber() || !value.canConvertToInt()) {
      throw damaged(source, what + " has the id " + shown(value) + "; " + idRule());
    }
    int id = value.intValue();
    if (id < 0 || id >= MAX_IDS) {
      throw damaged(source, what + " has the id " + id + "; " + idRule());
    }
    return id;
  }

  private static String idRule() {
    return "ids are whole numbers from 0 to " + (MAX_IDS - 1);
  }

  private static boolean isAbsent(JsonNode value) {
    return value.isMissingNode() || value.isNull();
  }

  private static boolean isWellFormed(String text) {
    return text.codePoints().noneMatch(c -> c >= Character.MIN_SURROGATE && c <= 0xDFFF);
  }

  private static TokenizerException damaged(String source, String trouble) {
    return new TokenizerException(source + ": " + trouble + ". Is the download complete?");
  }

  /** A value from a file, fit for one line of a log. */
  static String shown(JsonNode value) {
    if (value.size() > 2) {
      return "%s of %,d".formatted(value.isArray() ? "an array" : "an object", value.size());
    }
    return value.isString() ? shown(value.stringValue()) : shown(value.toString());
  }

  /** A value from a file in quotes, cut if long, fit for one line of a log. */
  static String shown(String value) {
    String start = value.length() > MAX_SHOWN ? value.substring(0, MAX_SHOWN) + "…" : value;
    return "'" + start.replaceAll("\\p{Cntrl}", "\uFFFD") + "'";
  }
}
