package dev.lily.engine.generation;

import java.time.Duration;

/** The waiting queue is full. Try again later. */
public final class EngineBusyException extends GenerationException {
  private static final long serialVersionUID = 1L;

  private final Duration retryAfter;

  public EngineBusyException(int queued, int queueLimit, Duration retryAfter) {
    super(
        "%d requests wait already and the queue holds %d. Retry in about %d s, or raise lily.queue-limit."
            .formatted(queued, queueLimit, Math.max(1, retryAfter.toSeconds())),
        null);
    this.retryAfter = retryAfter;
  }

  /** An estimate of when a place will be free. */
  public Duration retryAfter() {
    return retryAfter;
  }
}
