package dev.lily.engine.tokenizer;

import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * Checks that tokenizer files ask for exactly the steps that this package performs, since any other
 * one would change ids without a word.
 */
final class TokenizerFormat {
  private final String file;

  private TokenizerFormat(String file) {
    this.file = file;
  }

  /**
   * @param root a {@code tokenizer.json}
   * @throws TokenizerException if a step is unknown, and which
   */
  static void requireKnownSteps(JsonNode root, String file) {
    TokenizerFormat format = new TokenizerFormat(file);
    format.requireModel(root.path("model"));
    format.require(root, "/normalizer/type", "NFC");
    format.requirePreTokenizer(root);
    format.require(root, "/decoder/type", "ByteLevel");
    JsonNode postProcessor = root.path("post_processor");
    if (!isAbsent(postProcessor)) {
      format.require(root, "/post_processor/type", "ByteLevel");
    }
  }

  /**
   * @param root a {@code tokenizer_config.json}
   * @throws TokenizerException if it asks for tokens or spaces that are not in the text
   */
  static void requireNothingPutIn(JsonNode root, String file) {
    TokenizerFormat format = new TokenizerFormat(file);
    for (String name : List.of("add_bos_token", "add_eos_token", "add_prefix_space")) {
      format.requireUnset(root, name);
    }
  }

  private void requireModel(JsonNode model) {
    require(model, "/type", "BPE");
    for (String name :
        List.of(
            "dropout",
            "unk_token",
            "continuing_subword_prefix",
            "end_of_word_suffix",
            "byte_fallback",
            "ignore_merges")) {
      requireUnset(model, name);
    }
  }

  private void requirePreTokenizer(JsonNode root) {
    require(root, "/pre_tokenizer/type", "Sequence");
    JsonNode steps = root.at("/pre_tokenizer/pretokenizers");
    if (steps.size() != 2) {
      throw new TokenizerException(
          "%s: pre_tokenizer has %d steps; Lily runs two, Split and ByteLevel. %s"
              .formatted(file, steps.size(), remedy()));
    }
    require(root, "/pre_tokenizer/pretokenizers/0/type", "Split");
    require(root, "/pre_tokenizer/pretokenizers/0/pattern/Regex", PreTokenizer.PATTERN);
    require(root, "/pre_tokenizer/pretokenizers/0/behavior", "Isolated");
    require(root, "/pre_tokenizer/pretokenizers/0/invert", "false");
    require(root, "/pre_tokenizer/pretokenizers/1/type", "ByteLevel");
    require(root, "/pre_tokenizer/pretokenizers/1/add_prefix_space", "false");
    require(root, "/pre_tokenizer/pretokenizers/1/use_regex", "false");
  }

  private void require(JsonNode root, String pointer, String expected) {
    JsonNode value = root.at(pointer);
    if (!value.asString("").equals(expected)) {
      throw new TokenizerException(
          "%s: %s is %s; Lily runs only %s there. %s"
              .formatted(file, name(pointer), shown(value), expected, remedy()));
    }
  }

  private void requireUnset(JsonNode parent, String name) {
    JsonNode value = parent.path(name);
    boolean unset =
        isAbsent(value)
            || (value.isBoolean() && !value.booleanValue())
            || (value.isString() && value.stringValue().isEmpty());
    if (!unset) {
      throw new TokenizerException(
          "%s: %s is %s; Lily runs only tokenizers that leave it unset. %s"
              .formatted(file, name, shown(value), remedy()));
    }
  }

  private static boolean isAbsent(JsonNode value) {
    return value.isMissingNode() || value.isNull();
  }

  private static String name(String pointer) {
    return pointer.substring(1).replace('/', '.');
  }

  private static String shown(JsonNode value) {
    return value.isMissingNode() ? "absent" : TokenizerReader.shown(value);
  }

  private static String remedy() {
    return "Is this the tokenizer of a qwen3_5_moe checkpoint?";
  }
}
