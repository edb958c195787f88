package dev.lily.engine.constraint;

import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The tokens an answer may be made of, arranged for fast masks. Tokens of <em>plain</em> characters
 * only, which mean the same everywhere in a JSON string, are kept apart from all others: whole
 * scalar values except controls, quote, backslash and the two Unicode line separators. Immutable
 * and thread-safe; made once per tokenizer.
 */
public final class TokenVocabulary {
  /** In the place of a marker that the vocabulary does not have. */
  public static final int NO_MARKER = -1;

  /** Longest token, in bytes, that is ever allowed. */
  static final int MAX_TOKEN_BYTES = 256;

  /** Plain tokens longer than this are not kept apart. */
  static final int MAX_PLAIN_LENGTH = 64;

  private final int size;
  private final byte[] @Nullable [] texts;
  private final int[] endTokens;
  private final int longest;

  final TokenTrie plain;
  final TokenTrie others;

  /** By length in characters, the plain tokens that are not longer. */
  private final long[][] plainUpTo;

  /**
   * @param texts bytes by token id, {@code null} for tokens that are never part of an answer;
   *     handed over
   * @param endTokens tokens that end an answer; they have no text
   * @param markers tokens that stand for themselves, at most 8, or {@link #NO_MARKER}; the text of
   *     the i-th is {@link #marker}
   * @throws IllegalArgumentException if a byte has no token of its own, so that some text could not
   *     be written
   */
  public TokenVocabulary(byte[] @Nullable [] texts, int[] endTokens, List<Integer> markers) {
    this.texts = texts;
    this.endTokens = endTokens.clone();
    size = texts.length;
    for (int end : endTokens) {
      texts[end] = null;
    }
    for (int id = 0; id < size; id++) {
      if (looksLikeMarker(texts[id])) {
        texts[id] = null;
      }
    }
    for (int i = 0; i < markers.size(); i++) {
      if (markers.get(i) != NO_MARKER) {
        texts[markers.get(i)] = new byte[] {marker(i)};
      }
    }
    int[] plainLength = new int[size];
    BitSet isPlain = new BitSet();
    BitSet isOther = new BitSet();
    BitSet bytes = new BitSet();
    int most = 0;
    int mostPlain = 0;
    byte[][] known = new byte[size][];
    for (int id = 0; id < size; id++) {
      byte[] text = texts[id];
      if (text == null || text.length == 0 || text.length > MAX_TOKEN_BYTES) {
        continue;
      }
      known[id] = text;
      most = Math.max(most, text.length);
      plainLength[id] = plainLength(text);
      if (plainLength[id] > 0 && plainLength[id] <= MAX_PLAIN_LENGTH) {
        isPlain.set(id);
        mostPlain = Math.max(mostPlain, plainLength[id]);
      } else {
        isOther.set(id);
      }
      if (text.length == 1) {
        bytes.set(text[0] & 0xFF);
      }
    }
    requireBytes(bytes);
    longest = most;
    plain = new TokenTrie(isPlain.stream().toArray(), known, plainLength);
    isOther.stream().forEach(id -> plainLength[id] = 1);
    others = new TokenTrie(isOther.stream().toArray(), known, plainLength);
    plainUpTo = new long[mostPlain + 1][(size + 63) >> 6];
    for (int length = 1; length <= mostPlain; length++) {
      System.arraycopy(plainUpTo[length - 1], 0, plainUpTo[length], 0, plainUpTo[length].length);
      for (int id = isPlain.nextSetBit(0); id >= 0; id = isPlain.nextSetBit(id + 1)) {
        if (plainLength[id] == length) {
          plainUpTo[length][id >> 6] |= 1L << id;
        }
      }
    }
  }

  /** Byte-level vocabularies have tokens for bytes that no text has. */
  private static boolean looksLikeMarker(byte @Nullable [] text) {
    if (text != null) {
      for (byte b : text) {
        if ((b & 0xFF) >= Grammar.FIRST_MARKER) {
          return true;
        }
      }
    }
    return false;
  }

  private static void requireBytes(BitSet bytes) {
    for (int b = 0; b <= 0xF4; b++) {
      boolean inUtf8 = b < 0xC0 || b > 0xC1;
      if (inUtf8 && !bytes.get(b)) {
        throw new IllegalArgumentException(
            "The vocabulary has no token for the single byte 0x%02X, so some text cannot be written;"
                    .formatted(b)
                + " constrained decoding needs a byte-level vocabulary");
      }
    }
  }

  /** Length in characters if all are plain and whole, otherwise 0. */
  private static int plainLength(byte[] text) {
    int length = 0;
    for (int i = 0; i < text.length; length++) {
      int first = text[i] & 0xFF;
      if (first < 0x20 || first == '"' || first == '\\') {
        return 0;
      }
      int bytes = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
      if (bytes == 0 || first > 0xF4 || i + bytes > text.length) {
        return 0;
      }
      int codePoint = bytes == 1 ? first : first & (0x7F >> bytes);
      for (int k = 1; k < bytes; k++) {
        int next = text[i + k] & 0xFF;
        if ((next & 0xC0) != 0x80) {
          return 0;
        }
        codePoint = (codePoint << 6) | (next & 0x3F);
      }
      boolean wrong =
          (bytes == 3 && (codePoint < 0x800 || (codePoint >= 0xD800 && codePoint <= 0xDFFF)))
              || (bytes == 4 && (codePoint < 0x10000 || codePoint > 0x10FFFF))
              || codePoint == 0x2028
              || codePoint == 0x2029;
      if (wrong) {
        return 0;
      }
      i += bytes;
    }
    return length;
  }

  /** The byte that stands for a marker; it is in no UTF-8 text. */
  public static byte marker(int index) {
    return (byte) (Grammar.FIRST_MARKER + index);
  }

  /** Number of token ids. */
  public int size() {
    return size;
  }

  /** Words of a mask. */
  public int maskWords() {
    return (size + 63) >> 6;
  }

  /** Whether a token ends an answer. */
  public boolean isEnd(int token) {
    for (int end : endTokens) {
      if (end == token) {
        return true;
      }
    }
    return false;
  }

  /** Whether a token consists of nothing but one byte, once or more often. */
  public boolean isOnly(int token, byte unit) {
    byte[] text = texts[token];
    if (text == null) {
      return false;
    }
    for (byte b : text) {
      if (b != unit) {
        return false;
      }
    }
    return text.length > 0;
  }

  /** The bytes of a token, or {@code null} if it is never part of an answer. */
  byte @Nullable [] text(int token) {
    return texts[token];
  }

  /** Length in bytes of the longest token. */
  int longest() {
    return longest;
  }

  void allowEnds(long[] mask) {
    for (int end : endTokens) {
      mask[end >> 6] |= 1L << end;
    }
  }

  /** Allows the plain tokens of at most so many characters. */
  void allowPlain(int maxLength, long[] mask) {
    long[] allowed = plainUpTo[Math.min(maxLength, plainUpTo.length - 1)];
    for (int i = 0; i < mask.length; i++) {
      mask[i] |= allowed[i];
    }
  }

  /** Bytes held. */
  public long bytes() {
    long nodes = (long) plain.size() + others.size();
    return nodes * 12 + size * 8L + (long) plainUpTo.length * maskWords() * Long.BYTES;
  }
}
