package dev.lily.spring.openai;

/** What a caller wrote, for messages: in quotes and not too long. */
final class Quote {
  private static final int LONGEST = 60;

  private Quote() {}

  static String of(String text) {
    boolean whole = text.length() <= LONGEST;
    return '"' + (whole ? text : text.substring(0, LONGEST) + "…") + '"';
  }
}
