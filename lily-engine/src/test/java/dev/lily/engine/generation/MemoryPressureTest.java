package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.model.StatePool;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * A pool for two sessions and a full cache: the cache gives way, then requests wait, then leave.
 */
class MemoryPressureTest {
  private static final int PAGE = 10;
  private static final int PAGES = 20;
  private static final int SESSION = PAGES / 2 * PAGE;
  private static final Duration QUEUE_TIMEOUT = Duration.ofSeconds(30);

  private final ManualScheduler s =
      new ManualScheduler(
          saying("ok").pages(PAGES, PAGE).maxSequences(4).snapshots(6).build(),
          new SchedulerOptions(
              4,
              1,
              32,
              4096,
              ManualScheduler.STALL,
              new PrefixCacheOptions(10_000, 50, PAGE, PAGE, false),
              QUEUE_TIMEOUT,
              SpeculationOptions.OFF,
              SchedulerOptions.DEFAULT_MAX_STEP_TIME));

  @BeforeEach
  void fillTheCache() {
    for (int i = 0; i < 6; i++) {
      s.submit(prompt(100 + i, 3 * PAGE), b -> b.maxTokens(2));
      s.finish();
    }
    assertThat(states().snapshotPages()).isGreaterThan(PAGES / 4);
    assertThat(states().sequencePages()).isZero();
  }

  private StatePool states() {
    return s.model().states();
  }

  /** A request that may come to need half of the pool. */
  private Recorder submit(int first) {
    return s.submit(prompt(first, SESSION - 5), b -> b.minTokens(5).maxTokens(5));
  }

  @Test
  void sessionsGetTheCachesPages() {
    long evictions = s.scheduler().counters().cacheEvictions();
    Recorder first = submit(1);
    Recorder second = submit(2);
    s.turn();
    assertThat(s.scheduler().counters().running()).isEqualTo(2);
    s.finish();
    assertThat(first.completed().usage().completionTokens()).isEqualTo(5);
    assertThat(second.completed().usage().completionTokens()).isEqualTo(5);
    assertThat(s.scheduler().counters().cacheEvictions()).isGreaterThan(evictions);
    assertThat(states().usedPages()).isLessThanOrEqualTo(PAGES);
  }

  @Test
  void aThirdRequestWaitsAndRunsWhenOneHasEnded() {
    Recorder first = submit(1);
    Recorder second = submit(2);
    Recorder third = submit(3);
    s.turns(2);
    assertThat(s.scheduler().counters().running()).isEqualTo(2);
    assertThat(s.scheduler().queued()).isEqualTo(1);
    s.finish();
    assertThat(first.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(second.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(third.completed().reason()).isEqualTo(FinishReason.LENGTH);
  }

  @Test
  void whoWaitsTooLongIsRefusedAndOthersGoOn() {
    Recorder first = submit(1);
    Recorder second = submit(2);
    first.ready(false);
    second.ready(false);
    Recorder third = submit(3);
    s.turns(2);
    s.advance(QUEUE_TIMEOUT);
    s.turns(2);
    assertThat(third.failure()).isInstanceOf(EngineBusyException.class);
    first.ready(true);
    second.ready(true);
    s.finish();
    assertThat(first.completed().reason()).isEqualTo(FinishReason.LENGTH);
    assertThat(second.completed().reason()).isEqualTo(FinishReason.LENGTH);
  }

  @Test
  void whoFindsPlacesAndQueueTakenIsRefusedAtOnce() {
    for (int i = 1; i <= 5; i++) {
      submit(i);
    }
    assertThatThrownBy(() -> submit(6))
        .isInstanceOfSatisfying(
            EngineBusyException.class, e -> assertThat(e.retryAfter()).isPositive());
    s.finish();
    assertThat(s.scheduler().counters().rejected()).isEqualTo(1);
    assertThat(s.scheduler().counters().failed()).isZero();
  }
}
