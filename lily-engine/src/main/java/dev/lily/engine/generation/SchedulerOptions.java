package dev.lily.engine.generation;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How requests share the model.
 *
 * @param maxSessions requests served at the same time
 * @param queueLimit most requests waiting beside them
 * @param prefillChunk most prompt tokens of one pass, over all sessions
 * @param contextLength most tokens of one conversation, prompt and answer together
 * @param stallTimeout a session whose consumer takes nothing for this long is ended
 * @param cache what is kept of prompts
 * @param queueTimeout a request that waits for its turn for this long is refused; {@code null} lets
 *     it wait
 * @param speculation whether tokens are drafted
 * @param maxStepTime how long a pass in which sessions write may take because of prompts that are
 *     read beside them
 */
public record SchedulerOptions(
    int maxSessions,
    int queueLimit,
    int prefillChunk,
    int contextLength,
    Duration stallTimeout,
    PrefixCacheOptions cache,
    @Nullable Duration queueTimeout,
    SpeculationOptions speculation,
    Duration maxStepTime) {
  /** A few tokens a second, so no slower than people read. */
  public static final Duration DEFAULT_MAX_STEP_TIME = Duration.ofMillis(250);

  public SchedulerOptions {
    if (maxSessions < 1 || queueLimit < 0 || prefillChunk < 1 || contextLength < 2) {
      throw new IllegalArgumentException(
          "maxSessions %d and prefillChunk %d must be at least 1, queueLimit %d at least 0, contextLength %d at least 2"
              .formatted(maxSessions, prefillChunk, queueLimit, contextLength));
    }
    if (!stallTimeout.isPositive()) {
      throw new IllegalArgumentException(
          "stallTimeout is " + stallTimeout + "; it must be positive");
    }
    if (queueTimeout != null && !queueTimeout.isPositive()) {
      throw new IllegalArgumentException(
          "queueTimeout is " + queueTimeout + "; it must be positive");
    }
    if (!maxStepTime.isPositive()) {
      throw new IllegalArgumentException("maxStepTime is " + maxStepTime + "; it must be positive");
    }
  }

  /** Without a limit to the time in the queue, and without drafts. */
  public SchedulerOptions(
      int maxSessions,
      int queueLimit,
      int prefillChunk,
      int contextLength,
      Duration stallTimeout,
      PrefixCacheOptions cache) {
    this(
        maxSessions,
        queueLimit,
        prefillChunk,
        contextLength,
        stallTimeout,
        cache,
        null,
        SpeculationOptions.OFF,
        DEFAULT_MAX_STEP_TIME);
  }

  /** Without a prefix cache. */
  public SchedulerOptions(
      int maxSessions, int queueLimit, int prefillChunk, int contextLength, Duration stallTimeout) {
    this(
        maxSessions, queueLimit, prefillChunk, contextLength, stallTimeout, PrefixCacheOptions.OFF);
  }
}
