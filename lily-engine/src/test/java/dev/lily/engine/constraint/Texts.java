package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Small vocabularies, and answers written byte by byte. */
final class Texts {
  private Texts() {}

  /**
   * A token for each byte, whose id is the byte; then the given ones; then the end token. The bytes
   * behind those of UTF-8 are the markers.
   */
  static TokenVocabulary vocabulary(List<byte[]> tokens) {
    byte[][] texts = new byte[257 + tokens.size()][];
    for (int b = 0; b < 256; b++) {
      texts[b] = new byte[] {(byte) b};
    }
    for (int i = 0; i < tokens.size(); i++) {
      texts[256 + i] = tokens.get(i);
    }
    List<Integer> markers = List.of(0xF8, 0xF9, 0xFA);
    return new TokenVocabulary(texts, new int[] {256 + tokens.size()}, markers);
  }

  static TokenVocabulary bytes() {
    return vocabulary(List.of());
  }

  /** Tokens cut at random out of texts, not always between characters. */
  static List<byte[]> cut(List<String> texts, int count, Random random) {
    List<byte[]> tokens = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      byte[] text = texts.get(random.nextInt(texts.size())).getBytes(UTF_8);
      if (text.length > 1) {
        int from = random.nextInt(text.length - 1);
        int to = from + 2 + random.nextInt(Math.min(12, text.length - from - 1));
        tokens.add(java.util.Arrays.copyOfRange(text, from, Math.min(to, text.length)));
      }
    }
    return tokens;
  }

  static Grammar schema(String schema) {
    return Grammar.compile(OutputConstraint.JsonSchema.parse(schema.replace('\'', '"')));
  }

  static Grammar regex(String pattern) {
    return Grammar.compile(new OutputConstraint.Regex(pattern));
  }

  /** Whether a grammar has a text. */
  static boolean accepts(Grammar grammar, String text) {
    return accepts(grammar, text.getBytes(UTF_8));
  }

  static boolean accepts(Grammar grammar, byte[] text) {
    Matcher matcher = new Matcher(grammar, bytes());
    for (byte b : text) {
      if (!matcher.allows(b & 0xFF)) {
        return false;
      }
      matcher.advance(b & 0xFF);
    }
    return matcher.isComplete();
  }

  static boolean isAllowed(long[] mask, int token) {
    return (mask[token >> 6] & (1L << token)) != 0;
  }
}
