package dev.lily.engine.generation;

import java.time.Duration;

/** The waiting queue is full, or the request waited too long in it. Try again later. */
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

  private EngineBusyException(String message, Duration retryAfter) {
    super(message, null);
    this.retryAfter = retryAfter;
  }

  /** The request's turn did not come in time. */
  static EngineBusyException waited(Duration limit, int ahead, Duration retryAfter) {
    return new EngineBusyException(
        "The request waited %s for its turn, with %d others waiting. Retry in about %d s, or raise lily.queue-timeout."
            .formatted(limit, ahead, Math.max(1, retryAfter.toSeconds())),
        retryAfter);
  }

  /** An estimate of when a place will be free. */
  public Duration retryAfter() {
    return retryAfter;
  }
}
