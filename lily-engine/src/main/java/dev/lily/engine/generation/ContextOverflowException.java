package dev.lily.engine.generation;

/** The prompt does not fit the context window. */
public final class ContextOverflowException extends GenerationException {
  private static final long serialVersionUID = 1L;

  private final int promptTokens;
  private final int contextLength;

  public ContextOverflowException(int promptTokens, int contextLength) {
    super(
        ("The prompt has %d tokens, but the context window holds %d and at least one token must be"
                + " left for the answer. Shorten the conversation or raise lily.context-length.")
            .formatted(promptTokens, contextLength),
        null);
    this.promptTokens = promptTokens;
    this.contextLength = contextLength;
  }

  public int promptTokens() {
    return promptTokens;
  }

  public int contextLength() {
    return contextLength;
  }
}
