package dev.lily.engine.chat;

/** Parses one call out of a {@link TagLexer}'s tokens. */
interface CallParser {
  enum Verdict {
    /** More text is needed. */
    OPEN,
    /** {@link #call} is there; the text goes on at {@link #resumeAt}. */
    COMPLETE,
    /** The text up to {@link #resumeAt} is ordinary text. */
    NOT_A_CALL,
    /** The answer ended inside the call. */
    INCOMPLETE
  }

  /** The {@link Tag#bit bits} of the tags to tell from text. */
  int tags();

  /** Takes the lexer's current token. */
  Verdict accept();

  /**
   * Ends the answer.
   *
   * @param truncated whether a limit cut it
   * @return not {@link Verdict#OPEN}
   */
  Verdict finish(boolean truncated);

  /** After {@link Verdict#COMPLETE}. */
  ToolCall call();

  int resumeAt();
}
