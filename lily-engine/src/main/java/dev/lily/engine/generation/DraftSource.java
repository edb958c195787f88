package dev.lily.engine.generation;

/** Guesses how a sequence goes on. One per session; engine thread only. */
interface DraftSource {
  /** Notes the next token of the answer. */
  void add(int token);

  /**
   * Guesses what comes next. A guess may be wrong; it must be made of tokens of the vocabulary.
   *
   * @param target takes the tokens, from index {@code at} on
   * @param most how many there may be, at least 1
   * @return how many there are; 0 if nothing suggests itself
   */
  int draft(int[] target, int at, int most);
}
