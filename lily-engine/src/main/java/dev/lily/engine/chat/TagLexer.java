package dev.lily.engine.chat;

/**
 * Cuts growing text into tags and text between them. A token is never revised: a tag that is not
 * complete yet is not a token yet. Takes time linear in the text, however it is cut.
 *
 * <p>Offsets count chars from the start of the kept text; {@link #discard} moves them.
 */
final class TagLexer {
  /** A longer name is no name, which bounds what is held back for a tag. */
  private static final int MAX_NAME_LENGTH = 256;

  private static final Tag[] TAGS = Tag.values();

  private final StringBuilder text = new StringBuilder();
  private boolean ended;
  private int next;
  private Tag tag = Tag.TEXT;
  private int start;
  private int end;

  void append(String more) {
    text.append(more);
  }

  /** No more text comes: what might have become a tag is text. */
  void finish() {
    ended = true;
  }

  /**
   * Moves to the next token.
   *
   * @param enabled {@link Tag#bit bits} of the tags to tell from text
   * @return false if the rest is empty or may still become a tag
   */
  boolean advance(int enabled) {
    if (next == text.length()) {
      return false;
    }
    int from = next;
    if (text.charAt(next) == '<') {
      boolean undecided = false;
      for (Tag candidate : TAGS) {
        int length = (enabled & candidate.bit) == 0 ? 0 : match(candidate);
        if (length > 0) {
          token(candidate, next + length);
          return true;
        }
        undecided |= length < 0;
      }
      if (undecided && !ended) {
        return false;
      }
      from++;
    }
    int open = text.indexOf("<", from);
    token(Tag.TEXT, open < 0 ? text.length() : open);
    return true;
  }

  /** The length of the tag at {@link #next}, 0 if it is not there, negative if it may still be. */
  private int match(Tag candidate) {
    String literal = candidate.literal;
    int available = Math.min(literal.length(), text.length() - next);
    for (int i = 1; i < available; i++) {
      if (text.charAt(next + i) != literal.charAt(i)) {
        return 0;
      }
    }
    if (available < literal.length()) {
      return -1;
    }
    if (!candidate.isNamed()) {
      return available;
    }
    int nameStart = next + available;
    int limit = Math.min(text.length(), nameStart + MAX_NAME_LENGTH + 1);
    for (int i = nameStart; i < limit; i++) {
      char c = text.charAt(i);
      if (c == '>') {
        boolean undecided = candidate == Tag.PARAMETER_OPEN && i + 1 == text.length() && !ended;
        return undecided ? -1 : i == nameStart ? 0 : i + 1 - next;
      }
      if (!candidate.allowsInName(c)) {
        return 0;
      }
    }
    return limit - nameStart > MAX_NAME_LENGTH ? 0 : -1;
  }

  private void token(Tag found, int tokenEnd) {
    tag = found;
    start = next;
    end = tokenEnd;
    next = tokenEnd;
  }

  Tag tag() {
    return tag;
  }

  int start() {
    return start;
  }

  int end() {
    return end;
  }

  /** The name in the current tag. */
  String name() {
    return text.substring(start + tag.literal.length(), end - 1);
  }

  /** Whether the current token is whitespace only. */
  boolean isBlank() {
    return inkEnd() == start;
  }

  /** The end of the current token without its trailing whitespace. */
  int inkEnd() {
    int i = end;
    while (i > start && isSpace(text.charAt(i - 1))) {
      i--;
    }
    return i;
  }

  /** The end of the current token without its trailing line breaks. */
  int lineEnd() {
    int i = end;
    while (i > start && isLineBreak(text.charAt(i - 1))) {
      i--;
    }
    return i;
  }

  /** The whitespace before the current token on its line, or -1 if something else precedes it. */
  int indentation() {
    int i = start;
    while (i > 0 && (text.charAt(i - 1) == ' ' || text.charAt(i - 1) == '\t')) {
      i--;
    }
    return i == 0 || isLineBreak(text.charAt(i - 1)) ? start - i : -1;
  }

  /**
   * Whether nothing follows the current token on its line. The character after a {@link
   * Tag#PARAMETER_OPEN} is always there to tell; a token ends early rather than guess.
   */
  boolean endsLine() {
    return end == text.length() || isLineBreak(text.charAt(end));
  }

  boolean hasLineBreak(int from, int to) {
    for (int i = from; i < to; i++) {
      if (isLineBreak(text.charAt(i))) {
        return true;
      }
    }
    return false;
  }

  /** Where the next token starts. */
  int next() {
    return next;
  }

  /** Makes the next token start at an offset. */
  void moveTo(int offset) {
    next = offset;
  }

  int length() {
    return text.length();
  }

  char charAt(int offset) {
    return text.charAt(offset);
  }

  String substring(int from, int to) {
    return text.substring(from, to);
  }

  /**
   * Forgets the text before an offset, if that is worth the copying.
   *
   * @return by how much all offsets shrink
   */
  int discard(int before) {
    if (before == 0 || before < text.length() - before) {
      return 0;
    }
    text.delete(0, before);
    next -= before;
    start -= before;
    end -= before;
    return before;
  }

  static boolean isSpace(char c) {
    return c == ' ' || c == '\t' || isLineBreak(c);
  }

  static boolean isLineBreak(char c) {
    return c == '\n' || c == '\r';
  }
}
