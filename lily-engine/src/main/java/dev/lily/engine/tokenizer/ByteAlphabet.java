package dev.lily.engine.tokenizer;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The alphabet in which byte-level vocabularies are written (first used by GPT-2): printable bytes
 * stand for themselves, the other 68, in ascending order, for the characters from U+0100.
 */
final class ByteAlphabet {
  private static final int SIZE = 256 + 68;
  private static final char[] CHARS = new char[256];
  private static final short[] BYTES = new short[SIZE];

  static {
    Arrays.fill(BYTES, (short) -1);
    char next = 0x100;
    for (int b = 0; b < 256; b++) {
      boolean printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      CHARS[b] = printable ? (char) b : next++;
      BYTES[CHARS[b]] = (short) b;
    }
  }

  private ByteAlphabet() {}

  /** The character that stands for a byte, 0 to 255. */
  static char character(int unsignedByte) {
    return CHARS[unsignedByte];
  }

  /** The bytes that a vocabulary entry stands for; null if a character is not of the alphabet. */
  static byte @Nullable [] bytes(String entry) {
    byte[] bytes = new byte[entry.length()];
    for (int i = 0; i < bytes.length; i++) {
      char c = entry.charAt(i);
      if (c >= SIZE || BYTES[c] < 0) {
        return null;
      }
      bytes[i] = (byte) BYTES[c];
    }
    return bytes;
  }
}
