package dev.lily.engine.chat;

/** What {@link TagLexer} tells apart. */
enum Tag {
  /** Anything that is not an enabled tag. */
  TEXT(0, ""),
  THINK_OPEN(1, "<think>"),
  THINK_CLOSE(1 << 1, "</think>"),
  CALL_OPEN(1 << 2, "<tool_call>"),
  CALL_CLOSE(1 << 3, "</tool_call>"),
  /** {@code <function=NAME>}. */
  FUNCTION_OPEN(1 << 4, "<function="),
  FUNCTION_CLOSE(1 << 5, "</function>"),
  /** {@code <parameter=KEY>}. */
  PARAMETER_OPEN(1 << 6, "<parameter="),
  PARAMETER_CLOSE(1 << 7, "</parameter>");

  /** Its place in a set of tags. */
  final int bit;

  /** The whole tag, or its part before the name. */
  final String literal;

  Tag(int bit, String literal) {
    this.bit = bit;
    this.literal = literal;
  }

  boolean isNamed() {
    return this == FUNCTION_OPEN || this == PARAMETER_OPEN;
  }

  /** Whether a text may be the name in this tag. */
  boolean isName(String text) {
    return !text.isEmpty() && text.chars().allMatch(c -> allowsInName((char) c));
  }

  /** Whether a name may contain this character. */
  boolean allowsInName(char c) {
    return switch (c) {
      case '<', '>', '\n', '\r' -> false;
      case '{', '}', '"', '\'', '`', ' ', '\t' -> this != FUNCTION_OPEN;
      default -> true;
    };
  }
}
