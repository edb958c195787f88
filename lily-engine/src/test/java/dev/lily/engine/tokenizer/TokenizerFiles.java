package dev.lily.engine.tokenizer;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import tools.jackson.core.json.JsonWriteFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** Tokenizer files and recorded values for tests. */
final class TokenizerFiles {
  /** Escapes, so that lone surrogates get into files. */
  static final JsonMapper MAPPER =
      JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

  static final Path NANO = Path.of(System.getProperty("lily.nano.dir"));

  private TokenizerFiles() {}

  static JsonNode resource(String name) {
    try (InputStream in = TokenizerFiles.class.getResourceAsStream(name)) {
      return MAPPER.readTree(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static int[] ids(JsonNode array) {
    return MAPPER.treeToValue(array, int[].class);
  }

  static ObjectNode nano(String file) {
    return (ObjectNode) MAPPER.readTree(NANO.resolve(file).toFile());
  }

  /**
   * A sound tokenizer.json: byte b is token b, merge m gives token 256 + m, and after those come
   * the special {@code <|end|>} and the ordinary {@code <think>}. Merges are "left right".
   */
  static ObjectNode small(String... merges) {
    ObjectNode root = nano("tokenizer.json");
    ObjectNode vocab = MAPPER.createObjectNode();
    for (int b = 0; b < 256; b++) {
      vocab.put(Character.toString(ByteAlphabet.character(b)), b);
    }
    ArrayNode list = MAPPER.createArrayNode();
    for (String merge : merges) {
      list.add(merge);
      String merged = merge.replace(" ", "");
      if (!vocab.has(merged)) {
        vocab.put(merged, vocab.size());
      }
    }
    ((ObjectNode) root.get("model")).set("vocab", vocab);
    ((ObjectNode) root.get("model")).set("merges", list);
    ArrayNode added = MAPPER.createArrayNode();
    added.add(added(vocab.size(), "<|end|>", true));
    added.add(added(vocab.size() + 1, "<think>", false));
    root.set("added_tokens", added);
    return root;
  }

  static ObjectNode added(int id, String content, boolean special) {
    return MAPPER
        .createObjectNode()
        .put("id", id)
        .put("content", content)
        .put("special", special)
        .put("normalized", false);
  }

  static Path write(Path directory, JsonNode tokenizer) {
    return write(directory, "tokenizer.json", MAPPER.writeValueAsString(tokenizer));
  }

  static Path write(Path directory, String file, String text) {
    try {
      Files.writeString(directory.resolve(file), text);
      return directory;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
