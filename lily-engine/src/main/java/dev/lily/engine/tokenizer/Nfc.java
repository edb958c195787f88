package dev.lily.engine.tokenizer;

import java.text.Normalizer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Unicode normalisation form C in near linear time. The JDK's own sorts marks by insertion, so that
 * a crafted megabyte of them would take minutes; long runs are put in canonical order first.
 */
final class Nfc {
  /** All characters below it are in form C and combine with nothing before them. */
  private static final char FIRST_MARK = '\u0300';

  /** Far longer than runs of marks in any language, short enough for sorting by insertion. */
  private static final int LONG_RUN = 64;

  private static final String LOWEST_CLASS = "\u0334";
  private static final String HIGHEST_CLASS = "\u0345";

  private static final int MARK_TYPES =
      1 << Character.NON_SPACING_MARK
          | 1 << Character.COMBINING_SPACING_MARK
          | 1 << Character.ENCLOSING_MARK;

  private Nfc() {}

  /**
   * @param text any UTF-16; lone surrogates become U+FFFD
   */
  static String normalize(String text) {
    int plain = 0;
    while (plain < text.length() && text.charAt(plain) < FIRST_MARK) {
      plain++;
    }
    if (plain == text.length()) {
      return text;
    }
    return Normalizer.normalize(orderLongRuns(wellFormed(text)), Normalizer.Form.NFC);
  }

  private static String wellFormed(String text) {
    int i = 0;
    while (i < text.length() && !isLoneSurrogate(text, i)) {
      i += Character.charCount(text.codePointAt(i));
    }
    if (i == text.length()) {
      return text;
    }
    StringBuilder repaired = new StringBuilder(text);
    for (; i < text.length(); i += Character.charCount(text.codePointAt(i))) {
      if (isLoneSurrogate(text, i)) {
        repaired.setCharAt(i, '\uFFFD');
      }
    }
    return repaired.toString();
  }

  private static boolean isLoneSurrogate(String text, int at) {
    return Character.isSurrogate(text.charAt(at)) && Character.isBmpCodePoint(text.codePointAt(at));
  }

  /** Puts each long run of marks in canonical order, so that none is left to be moved. */
  private static String orderLongRuns(String text) {
    StringBuilder ordered = null;
    int copied = 0;
    int i = 0;
    while (i < text.length()) {
      int start = i;
      while (i < text.length() && isMark(text.codePointAt(i))) {
        i += Character.charCount(text.codePointAt(i));
      }
      if (i - start > LONG_RUN) {
        if (ordered == null) {
          ordered = new StringBuilder(text.length());
        }
        ordered.append(text, copied, start);
        appendOrdered(decompose(text.substring(start, i)), ordered);
        copied = i;
      }
      if (i == start) {
        i += Character.charCount(text.codePointAt(i));
      }
    }
    return ordered == null ? text : ordered.append(text, copied, text.length()).toString();
  }

  private static boolean isMark(int c) {
    return (1 << Character.getType(c) & MARK_TYPES) != 0;
  }

  private static int[] decompose(String marks) {
    Map<Integer, String> decompositions = new HashMap<>();
    StringBuilder decomposed = new StringBuilder(marks.length());
    for (int i = 0; i < marks.length(); i += Character.charCount(marks.codePointAt(i))) {
      decomposed.append(
          decompositions.computeIfAbsent(
              marks.codePointAt(i), c -> decomposed(Character.toString(c))));
    }
    return decomposed.codePoints().toArray();
  }

  private static void appendOrdered(int[] marks, StringBuilder out) {
    Map<Integer, Integer> classes = classes(marks);
    long[] keys = new long[marks.length];
    for (int start = 0, end; start < marks.length; start = end) {
      end = start;
      while (end < marks.length && classes.containsKey(marks[end])) {
        keys[end] = (long) classes.get(marks[end]) << 32 | end;
        end++;
      }
      Arrays.sort(keys, start, end);
      for (int i = start; i < end; i++) {
        out.appendCodePoint(marks[(int) keys[i]]);
      }
      if (end < marks.length) {
        out.appendCodePoint(marks[end++]);
      }
    }
  }

  /** Per mark that may be moved, a number that grows with its canonical combining class. */
  private static Map<Integer, Integer> classes(int[] marks) {
    List<Integer> movable =
        Arrays.stream(marks).distinct().filter(Nfc::isMovable).boxed().sorted(Nfc::order).toList();
    Map<Integer, Integer> classes = new HashMap<>();
    int number = 0;
    for (int i = 0; i < movable.size(); i++) {
      if (i > 0 && order(movable.get(i - 1), movable.get(i)) != 0) {
        number++;
      }
      classes.put(movable.get(i), number);
    }
    return classes;
  }

  private static boolean isMovable(int mark) {
    String text = Character.toString(mark);
    return !isOrdered(HIGHEST_CLASS + text) || !isOrdered(text + LOWEST_CLASS);
  }

  /** The JDK keeps the classes to itself, but shows which of two marks it puts first. */
  private static int order(int a, int b) {
    if (!isOrdered(Character.toString(a) + Character.toString(b))) {
      return 1;
    }
    return isOrdered(Character.toString(b) + Character.toString(a)) ? 0 : -1;
  }

  private static boolean isOrdered(String decomposed) {
    return decomposed(decomposed).equals(decomposed);
  }

  private static String decomposed(String text) {
    return Normalizer.normalize(text, Normalizer.Form.NFD);
  }
}
