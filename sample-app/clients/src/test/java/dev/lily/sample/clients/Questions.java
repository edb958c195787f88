package dev.lily.sample.clients;

/** Questions of which lily-nano's answers are known. */
final class Questions {
  static final String SUM = "What is 60 - 16?";
  static final String SUM_ANSWER = "60 - 16 = 44";
  static final String DAY = "What day is before Saturday?";
  static final String DAY_ANSWER = "Friday comes before Saturday.";
  static final String DAY_REASONING = "The days go Friday, Saturday.";
  static final String STORY = "Tell me a story about a fox named Mia.";

  /** More tokens than lily-nano's context has. */
  static final String LONG = "a ".repeat(40_000);

  private Questions() {}
}
