package dev.lily.engine.generation;

/** What a pass has to do, in the terms of {@link PrefillPacer}. Used again from pass to pass. */
final class PassLoad {
  private int otherRows;
  private int promptRows;
  private long attended;
  private boolean isPaced;

  /**
   * Begins a pass.
   *
   * @param otherRows rows that are in it before any of prompts
   */
  void begin(int otherRows) {
    this.otherRows = otherRows;
    promptRows = 0;
    attended = 0;
    isPaced = false;
  }

  /**
   * Adds rows of a prompt.
   *
   * @param isPaced whether there would be more of them but for the time they take
   */
  void addPrompt(int rows, int position, boolean isPaced) {
    promptRows += rows;
    attended += (long) rows * position + (long) rows * rows / 2;
    this.isPaced |= isPaced;
  }

  /** Whether the time decided how many rows of prompts it has. */
  boolean isPaced() {
    return isPaced;
  }

  /** Rows of sessions that are writing. */
  int otherRows() {
    return otherRows;
  }

  int promptRows() {
    return promptRows;
  }

  /** Tokens that the rows of prompts attend to, all rows together. */
  long attended() {
    return attended;
  }
}
