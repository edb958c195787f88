package dev.lily.engine.chat;

/**
 * What Python's {@code str.strip()} removes; wider than Java's {@code strip}, which keeps U+00A0.
 */
final class PythonWhitespace {
  private PythonWhitespace() {}

  static boolean isWhitespace(char c) {
    return (c >= '\t' && c <= '\r')
        || (c >= '\u001c' && c <= ' ')
        || c == '\u0085'
        || c == '\u00a0'
        || c == '\u1680'
        || (c >= '\u2000' && c <= '\u200a')
        || c == '\u2028'
        || c == '\u2029'
        || c == '\u202f'
        || c == '\u205f'
        || c == '\u3000';
  }

  static boolean isBlank(String text) {
    return leading(text) == text.length();
  }

  /** Offset of the first character that is not whitespace; the length if there is none. */
  static int leading(String text) {
    int begin = 0;
    while (begin < text.length() && isWhitespace(text.charAt(begin))) {
      begin++;
    }
    return begin;
  }

  /** Offset after the last character that is not whitespace; 0 if there is none. */
  static int trailing(String text) {
    int end = text.length();
    while (end > 0 && isWhitespace(text.charAt(end - 1))) {
      end--;
    }
    return end;
  }
}
