package dev.lily.engine.tokenizer;

/**
 * Cuts text into the pieces within which tokens may merge, exactly as {@link #PATTERN} does, but in
 * linear time and without a stack. Character classes are those of the JDK's Unicode version.
 */
final class PreTokenizer {
  /** The one pattern that this class implements. */
  static final String PATTERN =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
          + "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

  private static final int LETTER_TYPES =
      1 << Character.UPPERCASE_LETTER
          | 1 << Character.LOWERCASE_LETTER
          | 1 << Character.TITLECASE_LETTER
          | 1 << Character.MODIFIER_LETTER
          | 1 << Character.OTHER_LETTER
          | 1 << Character.NON_SPACING_MARK
          | 1 << Character.COMBINING_SPACING_MARK
          | 1 << Character.ENCLOSING_MARK;
  private static final int NUMBER_TYPES =
      1 << Character.DECIMAL_DIGIT_NUMBER
          | 1 << Character.LETTER_NUMBER
          | 1 << Character.OTHER_NUMBER;
  private static final int SPACE_TYPES =
      1 << Character.SPACE_SEPARATOR
          | 1 << Character.LINE_SEPARATOR
          | 1 << Character.PARAGRAPH_SEPARATOR;

  private enum Kind {
    /** {@code [\p{L}\p{M}]}. */
    LETTER,
    /** {@code \p{N}}. */
    NUMBER,
    /** {@code \s}: Unicode White_Space. */
    SPACE,
    OTHER,
    /** After the last character. */
    END
  }

  private PreTokenizer() {}

  /**
   * The end of the piece that starts at {@code start}.
   *
   * @param text well-formed UTF-16
   * @param start a character's offset, less than the text's length
   */
  static int end(String text, int start) {
    int first = text.codePointAt(start);
    int second = start + Character.charCount(first);
    if (first == '\'') {
      int suffix = contraction(text, second);
      if (suffix > 0) {
        return second + suffix;
      }
    }
    Kind kind = kind(first);
    Kind following = kindAt(text, second);
    if (kind == Kind.LETTER) {
      return endOfRun(text, second, Kind.LETTER);
    }
    if (kind == Kind.NUMBER) {
      return second;
    }
    if (following == Kind.LETTER && !isLineBreak(first)) {
      return endOfRun(text, second, Kind.LETTER);
    }
    if (kind == Kind.OTHER || (first == ' ' && following == Kind.OTHER)) {
      int end = endOfRun(text, second, Kind.OTHER);
      while (end < text.length() && isLineBreak(text.charAt(end))) {
        end++;
      }
      return end;
    }
    return endOfSpace(text, start);
  }

  /**
   * Spaces up to the last line break among them; failing that all but the one that belongs to what
   * follows.
   */
  private static int endOfSpace(String text, int start) {
    int end = endOfRun(text, start, Kind.SPACE);
    for (int i = end; i > start; i--) {
      if (isLineBreak(text.charAt(i - 1))) {
        return i;
      }
    }
    return end == text.length() || end == start + 1 ? end : end - 1;
  }

  /** Length of {@code s t re ve m ll d} in either case, 0 if none is there. */
  private static int contraction(String text, int at) {
    char first = fold(text, at);
    return switch (first) {
      case 's', 't', 'm', 'd' -> 1;
      case 'r', 'v' -> fold(text, at + 1) == 'e' ? 2 : 0;
      case 'l' -> fold(text, at + 1) == 'l' ? 2 : 0;
      default -> 0;
    };
  }

  /** Simple case folding as far as contractions need it: U+017F is a long s. */
  private static char fold(String text, int at) {
    if (at >= text.length()) {
      return 0;
    }
    char c = text.charAt(at);
    if (c >= 'A' && c <= 'Z') {
      return (char) (c + ('a' - 'A'));
    }
    return c == '\u017F' ? 's' : c;
  }

  private static int endOfRun(String text, int start, Kind kind) {
    int end = start;
    while (end < text.length()) {
      int c = text.codePointAt(end);
      if (kind(c) != kind) {
        break;
      }
      end += Character.charCount(c);
    }
    return end;
  }

  private static Kind kindAt(String text, int at) {
    return at < text.length() ? kind(text.codePointAt(at)) : Kind.END;
  }

  private static Kind kind(int c) {
    int type = 1 << Character.getType(c);
    if ((type & LETTER_TYPES) != 0) {
      return Kind.LETTER;
    }
    if ((type & NUMBER_TYPES) != 0) {
      return Kind.NUMBER;
    }
    if ((type & SPACE_TYPES) != 0 || (c >= '\t' && c <= '\r') || c == 0x85) {
      return Kind.SPACE;
    }
    return Kind.OTHER;
  }

  private static boolean isLineBreak(int c) {
    return c == '\r' || c == '\n';
  }
}
