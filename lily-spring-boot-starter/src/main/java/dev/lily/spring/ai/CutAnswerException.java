package dev.lily.spring.ai;

/** An answer that was to become an object is incomplete, because a limit cut it off. */
public final class CutAnswerException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  private final String finishReason;
  private final int completionTokens;

  CutAnswerException(String finishReason, int completionTokens) {
    super(
        "The answer for entity() was cut off after %d tokens (finish reason '%s'), so it cannot be converted. Raise the token limit (maxTokens, lily.chat.max-tokens) or leave more of the context for the answer; reasoning counts, too."
            .formatted(completionTokens, finishReason));
    this.finishReason = finishReason;
    this.completionTokens = completionTokens;
  }

  /** Why the answer ended, in the model's word; {@code length} for Lily. */
  public String finishReason() {
    return finishReason;
  }

  /** Tokens of the answer, reasoning included. */
  public int completionTokens() {
    return completionTokens;
  }
}
