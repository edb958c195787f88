package dev.lily.engine.tokenizer;

/**
 * UTF-8 to text, in parts cut anywhere. Each maximal invalid part becomes one U+FFFD, as the
 * Unicode standard recommends. The JDK does the same but for encoded surrogates, which give it one
 * U+FFFD instead of three. Not thread-safe.
 */
final class Utf8Decoder {
  private static final char REPLACEMENT = '\uFFFD';

  private char[] chars = new char[64];
  private int length;

  /** The character that has begun, and how many bytes it still needs. */
  private int codePoint;

  private int missing;

  /** Which bytes may come next in it. */
  private int lowest = 0x80;

  private int highest = 0xBF;

  /** The text that these bytes complete; those of an unfinished character wait. */
  String decode(byte[] bytes) {
    // Every char has a byte of its own but the first, whose byte may have waited.
    if (chars.length <= bytes.length) {
      chars = new char[bytes.length + 1];
    }
    length = 0;
    for (byte b : bytes) {
      int unsigned = b & 0xFF;
      if (missing > 0 && (unsigned < lowest || unsigned > highest)) {
        chars[length++] = REPLACEMENT;
        missing = 0;
      }
      if (missing > 0) {
        continueWith(unsigned);
      } else {
        begin(unsigned);
      }
    }
    return length == 0 ? "" : new String(chars, 0, length);
  }

  /** U+FFFD if a character is unfinished, else empty; then ready for another text. */
  String finish() {
    boolean unfinished = missing > 0;
    missing = 0;
    return unfinished ? "\uFFFD" : "";
  }

  private void begin(int b) {
    lowest = 0x80;
    highest = 0xBF;
    if (b < 0x80) {
      chars[length++] = (char) b;
    } else if (b >= 0xC2 && b <= 0xDF) {
      missing = 1;
      codePoint = b & 0x1F;
    } else if (b >= 0xE0 && b <= 0xEF) {
      missing = 2;
      codePoint = b & 0x0F;
      // Neither overlong forms nor surrogates.
      lowest = b == 0xE0 ? 0xA0 : 0x80;
      highest = b == 0xED ? 0x9F : 0xBF;
    } else if (b >= 0xF0 && b <= 0xF4) {
      missing = 3;
      codePoint = b & 0x07;
      // Neither overlong forms nor beyond U+10FFFF.
      lowest = b == 0xF0 ? 0x90 : 0x80;
      highest = b == 0xF4 ? 0x8F : 0xBF;
    } else {
      chars[length++] = REPLACEMENT;
    }
  }

  private void continueWith(int b) {
    lowest = 0x80;
    highest = 0xBF;
    codePoint = (codePoint << 6) | (b & 0x3F);
    if (--missing == 0) {
      length += Character.toChars(codePoint, chars, length);
    }
  }
}
