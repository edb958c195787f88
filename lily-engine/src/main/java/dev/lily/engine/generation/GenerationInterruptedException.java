package dev.lily.engine.generation;

/**
 * A thread that waited for an answer was interrupted. The request is cancelled and the thread's
 * interrupt flag is set again.
 */
public final class GenerationInterruptedException extends GenerationException {
  private static final long serialVersionUID = 1L;

  public GenerationInterruptedException(String requestId, InterruptedException cause) {
    super(
        "The thread was interrupted while it waited for request "
            + requestId
            + ", which is cancelled",
        cause);
  }
}
