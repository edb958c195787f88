package dev.lily.engine.generation;

import java.time.Duration;

/**
 * Durations on the {@link System#nanoTime} scale, whose values may wrap and are only subtracted.
 */
final class Nanos {
  /** Longer than any process lives, and far from overflow. */
  static final long FOREVER = Long.MAX_VALUE / 4;

  private static final Duration LONGEST = Duration.ofNanos(FOREVER);

  private Nanos() {}

  /** The duration in nanoseconds, at most {@link #FOREVER}. */
  static long of(Duration duration) {
    return duration.compareTo(LONGEST) >= 0 ? FOREVER : Math.max(0, duration.toNanos());
  }
}
