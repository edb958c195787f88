package dev.lily.engine.chat;

import java.util.Arrays;

/**
 * Text that remembers which of its parts came from the caller.
 *
 * @param text the whole text
 * @param literalRanges pairs {@code start, end} of char offsets of the caller's parts: ascending,
 *     none empty, no two touching; not copied
 */
record MarkedText(String text, int[] literalRanges) {
  static final MarkedText EMPTY = new MarkedText("", new int[0]);

  /** Text that came from the caller. */
  static MarkedText literal(String text) {
    return new Builder().literal(text).build();
  }

  boolean isEmpty() {
    return text.isEmpty();
  }

  boolean isBlank() {
    return PythonWhitespace.isBlank(text);
  }

  /** Without whitespace at both ends, as Python understands whitespace. */
  MarkedText trim() {
    int end = PythonWhitespace.trailing(text);
    return end == 0 ? EMPTY : substring(PythonWhitespace.leading(text), end);
  }

  MarkedText withoutLeadingNewlines() {
    int begin = 0;
    while (begin < text.length() && text.charAt(begin) == '\n') {
      begin++;
    }
    return substring(begin, text.length());
  }

  MarkedText substring(int begin, int end) {
    if (begin == 0 && end == text.length()) {
      return this;
    }
    int[] kept = new int[literalRanges.length];
    int size = 0;
    for (int i = 0; i < literalRanges.length; i += 2) {
      int from = Math.max(literalRanges[i], begin);
      int to = Math.min(literalRanges[i + 1], end);
      if (from < to) {
        kept[size++] = from - begin;
        kept[size++] = to - begin;
      }
    }
    return new MarkedText(text.substring(begin, end), Arrays.copyOf(kept, size));
  }

  /** Joins pieces; literals that touch become one range. */
  static final class Builder {
    private final StringBuilder text = new StringBuilder();
    private int[] ranges = new int[16];
    private int size;

    /** Appends text of the template itself. */
    Builder template(String piece) {
      text.append(piece);
      return this;
    }

    /** Appends text of the caller. */
    Builder literal(String piece) {
      int start = text.length();
      text.append(piece);
      mark(start, text.length());
      return this;
    }

    Builder append(MarkedText piece) {
      int offset = text.length();
      text.append(piece.text);
      for (int i = 0; i < piece.literalRanges.length; i += 2) {
        mark(offset + piece.literalRanges[i], offset + piece.literalRanges[i + 1]);
      }
      return this;
    }

    MarkedText build() {
      return new MarkedText(text.toString(), Arrays.copyOf(ranges, size));
    }

    private void mark(int start, int end) {
      if (start == end) {
        return;
      }
      if (size > 0 && ranges[size - 1] == start) {
        ranges[size - 1] = end;
        return;
      }
      if (size == ranges.length) {
        ranges = Arrays.copyOf(ranges, 2 * size);
      }
      ranges[size++] = start;
      ranges[size++] = end;
    }
  }
}
