package dev.lily.engine.generation;

import java.time.Duration;

/** The request did not finish in its time, or its consumer did not take its events. */
public final class DeadlineExceededException extends GenerationException {
  private static final long serialVersionUID = 1L;

  public DeadlineExceededException(String what, Duration limit) {
    super("%s exceeded its limit of %d ms".formatted(what, limit.toMillis()), null);
  }
}
