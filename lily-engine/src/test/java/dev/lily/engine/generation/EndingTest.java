package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.STALL;
import static dev.lily.engine.generation.ManualScheduler.answer;
import static dev.lily.engine.generation.ManualScheduler.options;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.time.Duration;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ends that come from outside: callers, time, consumers, closing. */
class EndingTest {
  private static final String STORY = "Once upon a time there was a fox who lived in the woods";
  private static final UnaryOperator<GenerationRequest.Builder> PLAIN = b -> b;

  // Cancellation.

  @Test
  void cancelsAWaitingRequestBeforeItHasAStep() {
    ManualScheduler s = new ManualScheduler(saying(STORY).build(), options(1, 8, 32));
    Recorder running = s.submit(prompt(1, 3), PLAIN);
    Recorder waiting = s.submit(prompt(2, 3), PLAIN);
    s.turn();
    waiting.handle().cancel();
    s.turn();
    assertThat(waiting.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    assertThat(waiting.completed().usage()).isEqualTo(new Usage(3, 0, 0, 0));
    assertThat(running.hasEnded()).isFalse();
    s.finish();
    assertThat(s.model().device().samplingBegun()).hasSize(1);
    assertThat(s.scheduler().counters().cancelled()).isEqualTo(1);
  }

  @Test
  void cancelsDuringThePromptWithoutAFurtherStep() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder r = s.submit(prompt(1, 3000), PLAIN);
    s.turns(2);
    r.handle().cancel();
    s.turns(5);
    assertThat(s.steps()).hasSize(2);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    assertThat(r.completed().timings().prefill()).isZero();
    s.finish();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void cancelsDuringTheAnswerWithoutAFurtherStep(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    Recorder r = s.submit(prompt(1, 3), PLAIN);
    s.turns(4);
    int steps = s.steps().size();
    int events = r.events().size();
    r.handle().cancel();
    s.turns(5);
    assertThat(s.steps()).hasSize(steps);
    assertThat(r.events()).hasSize(events + 1);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    s.finish();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aListenerMayCancelItsRequest(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    Recorder[] self = new Recorder[1];
    Recorder r =
        new Recorder(
            event -> {
              if (event instanceof GenerationEvent.Output) {
                self[0].handle().cancel();
              }
            });
    self[0] = r;
    s.submit(prompt(1, 3), false, PLAIN, r);
    s.finish();
    assertThat(r.outputs()).hasSize(1);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    assertThat(s.steps()).hasSize(depth);
  }

  @Test
  void cancellingAfterTheEndDoesNothing() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    Recorder r = s.submit(prompt(1, 3), PLAIN);
    s.finish();
    r.handle().cancel();
    r.handle().cancel();
    s.finish();
    assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(s.scheduler().counters().cancelled()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aCancelledRequestMakesRoomForTheNextWhenItsPassesAreOver(int depth) {
    // One slot and pages for one window: the next request gets the very same ones.
    ManualScheduler s =
        new ManualScheduler(
            saying(STORY).maxPassesInFlight(depth).maxSequences(1).pages(256, 16).build(),
            options(8, 8, 32));
    Recorder first = s.submit(prompt(1, 3), PLAIN);
    Recorder second = s.submit(prompt(2, 3), PLAIN);
    s.turns(3);
    assertThat(s.scheduler().queued()).isEqualTo(1);
    first.handle().cancel();
    s.turns(depth);
    assertThat(s.scheduler().queued()).isZero();
    s.finish();
    assertThat(second.text()).isEqualTo(STORY);
  }

  // Deadlines.

  @Test
  void failsARequestWhoseTimeIsUpInTheQueue() {
    ManualScheduler s = new ManualScheduler(saying(STORY).build(), options(1, 8, 32));
    s.submit(prompt(1, 3), PLAIN);
    Recorder late = s.submit(prompt(2, 3), b -> b.timeout(Duration.ofMillis(100)));
    s.turn();
    s.advance(Duration.ofMillis(99));
    s.turn();
    assertThat(late.hasEnded()).isFalse();
    s.advance(Duration.ofMillis(1));
    s.turn();
    assertThat(late.failure())
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("queue")
        .hasMessageContaining("100 ms");
    s.finish();
    assertThat(s.scheduler().counters().failed()).isEqualTo(1);
    assertThat(s.scheduler().counters().lastFailure()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void failsARequestWhoseTimeIsUpInThePromptOrTheAnswer(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    Recorder reading = s.submit(prompt(1, 3000), b -> b.timeout(Duration.ofSeconds(1)));
    Recorder writing = s.submit(prompt(2, 3), b -> b.timeout(Duration.ofSeconds(1)));
    s.turns(depth + 2);
    s.advance(Duration.ofSeconds(1));
    int steps = s.steps().size();
    s.turns(4);
    assertThat(s.steps()).hasSize(steps);
    assertThat(reading.failure())
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("reading the prompt");
    assertThat(writing.failure())
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("writing the answer");
    assertThat(writing.outputs()).isNotEmpty();
    s.finish();
  }

  @Test
  void sleepsNoLongerThanToTheNextDeadline() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder r = s.submit(prompt(1, 3), b -> b.timeout(Duration.ofSeconds(90)));
    r.ready(false);
    assertThat(s.turn()).isEqualTo(STALL.toNanos());
    s.advance(Duration.ofSeconds(50));
    assertThat(s.turn()).isEqualTo(Duration.ofSeconds(10).toNanos());
    r.ready(true);
    s.turn();
    r.ready(false);
    s.turn();
    assertThat(s.turn()).isEqualTo(Duration.ofSeconds(40).toNanos());
    s.advance(Duration.ofSeconds(40));
    s.finish();
    assertThat(r.failure()).isInstanceOf(DeadlineExceededException.class);
  }

  @Test
  void takesAnyTimeoutHoweverLong() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    Recorder r = s.submit(prompt(1, 3), b -> b.timeout(Duration.ofSeconds(Long.MAX_VALUE)));
    s.finish();
    assertThat(r.text()).isEqualTo("ok");
  }

  @Test
  void refusesWhoWaitsLongerForItsTurnThanAllowed() {
    ManualScheduler s =
        new ManualScheduler(
            saying("ok").build(),
            new SchedulerOptions(
                1,
                8,
                32,
                4096,
                STALL,
                PrefixCacheOptions.OFF,
                Duration.ofSeconds(10),
                SpeculationOptions.OFF,
                SchedulerOptions.DEFAULT_MAX_STEP_TIME));
    Recorder running = s.submit(prompt(1, 3), b -> b);
    running.ready(false);
    s.turn();
    Recorder first = s.submit(prompt(2, 3), b -> b);
    s.turn();
    s.advance(Duration.ofSeconds(4));
    Recorder second = s.submit(prompt(3, 3), b -> b);
    assertThat(s.runUntilIdle()).isEqualTo(Duration.ofSeconds(6).toNanos());
    s.advance(Duration.ofSeconds(6));
    assertThat(s.runUntilIdle()).isEqualTo(Duration.ofSeconds(4).toNanos());
    assertThat(first.failure())
        .isInstanceOfSatisfying(
            EngineBusyException.class, e -> assertThat(e.retryAfter()).isPositive())
        .hasMessageContaining("waited PT10S for its turn, with 1 others waiting")
        .hasMessageContaining("lily.queue-timeout");
    running.ready(true);
    s.finish();
    assertThat(running.text()).isEqualTo("ok");
    assertThat(second.text()).as("its turn came in time").isEqualTo("ok");
  }

  // Back-pressure.

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void pausesASessionWhoseConsumerIsNotReadyWhileOthersGoOn(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    Recorder slow = s.submit(prompt(1, 3), PLAIN);
    Recorder quick = s.submit(prompt(2, 3), PLAIN);
    s.turns(3);
    slow.ready(false);
    s.turns(depth - 1); // what is in flight still comes
    int heard = slow.events().size();
    assertThat(s.runUntilIdle()).isEqualTo(STALL.toNanos());
    assertThat(slow.events()).hasSizeBetween(heard, heard + 1);
    assertThat(slow.hasEnded()).isFalse();
    assertThat(quick.text()).isEqualTo(STORY);
    slow.ready(true);
    s.finish();
    assertThat(slow.text()).isEqualTo(STORY);
  }

  @Test
  void pausesAPromptWhoseConsumerIsNotReady() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    Recorder r = s.submit(prompt(1, 100), PLAIN);
    s.turn();
    r.ready(false);
    s.runUntilIdle();
    assertThat(s.steps()).hasSize(1);
    r.ready(true);
    s.finish();
    assertThat(r.text()).isEqualTo("ok");
  }

  @Test
  void endsASessionThatStallsTooLong() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder r = s.submit(prompt(1, 3), PLAIN);
    s.turns(3);
    r.ready(false);
    s.turn();
    s.advance(STALL.minusNanos(1));
    s.turn();
    assertThat(r.hasEnded()).isFalse();
    s.advance(Duration.ofNanos(1));
    s.turn();
    assertThat(r.failure())
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("consumer")
        .hasMessageContaining("60000 ms");
    s.finish();
  }

  @Test
  void countsAStallFromItsLatestBeginning() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder r = s.submit(prompt(1, 3), PLAIN);
    s.turns(3);
    for (int i = 0; i < 3; i++) {
      r.ready(false);
      s.turn();
      s.advance(STALL.minusNanos(1));
      s.turn();
      r.ready(true);
      s.turn();
    }
    assertThat(r.hasEnded()).isFalse();
    s.finish();
    assertThat(r.text()).isEqualTo(STORY);
  }

  // Listeners that throw.

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void cancelsTheRequestOfAListenerThatThrows(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    Recorder bad =
        s.submit(
            prompt(1, 3),
            false,
            PLAIN,
            new Recorder(
                _ -> {
                  throw new IllegalStateException("scripted");
                }));
    Recorder good = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertThat(bad.events()).hasSize(2);
    assertThat(bad.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    assertThat(good.text()).isEqualTo(STORY);
  }

  @Test
  void cancelsARequestWhoseListenerDidNotTakeTheLastToken() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder bad =
        s.submit(
            prompt(1, 3),
            false,
            b -> b.maxTokens(1),
            new Recorder(
                event -> {
                  if (event instanceof GenerationEvent.Output) {
                    throw new IllegalStateException("scripted");
                  }
                }));
    s.finish();
    assertThat(bad.completed().reason()).isEqualTo(FinishReason.CANCELLED);
  }

  @Test
  void cancelsTheRequestOfAListenerThatCannotSayWhetherItIsReady() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    ResultCollector collector = new ResultCollector();
    GenerationListener bad =
        new GenerationListener() {
          @Override
          public void onEvent(GenerationEvent event) {
            collector.onEvent(event);
          }

          @Override
          public boolean isReady() {
            throw new StackOverflowError("scripted");
          }
        };
    GenerationHandle handle =
        s.scheduler()
            .submit(
                GenerationRequest.of("x"),
                new EncodedPrompt(prompt(1, 3), false),
                ManualScheduler.GREEDY,
                bad);
    s.finish();
    assertThat(handle.isDone()).isTrue();
    assertThat(collector.result().finishReason()).isEqualTo(FinishReason.CANCELLED);
  }

  // The queue.

  @Test
  void refusesWhenPlacesAndQueueAreTaken() {
    ManualScheduler s = new ManualScheduler(saying(STORY).build(), options(2, 3, 32));
    for (int i = 0; i < 5; i++) {
      s.submit(prompt(i, 3), PLAIN);
    }
    s.turn();
    EngineBusyException refused =
        catchThrowableOfType(EngineBusyException.class, () -> s.submit(prompt(6, 3), PLAIN));
    assertThat(refused).hasMessageContaining("3 requests wait");
    assertThat(refused.retryAfter()).isEqualTo(Duration.ofSeconds(1));
    assertThatThrownBy(() -> s.scheduler().checkOpen()).isInstanceOf(EngineBusyException.class);
    assertThat(s.scheduler().counters().rejected()).isEqualTo(2);
    s.finish();
    assertThat(s.scheduler().counters().completed()).isEqualTo(5);
    s.scheduler().checkOpen();
  }

  @Test
  void withoutAQueueTakesAsManyAsThereArePlaces() {
    ManualScheduler s = new ManualScheduler(saying("ok").build(), options(1, 0, 32));
    Recorder first = s.submit(prompt(1, 3), PLAIN);
    assertThatThrownBy(() -> s.submit(prompt(2, 3), PLAIN)).isInstanceOf(EngineBusyException.class);
    s.finish();
    s.submit(prompt(3, 3), PLAIN);
    s.finish();
    assertThat(first.text()).isEqualTo("ok");
  }

  @Test
  void estimatesTheRetryFromHowLongAnswersTake() {
    ManualScheduler s = new ManualScheduler(saying("ok").build(), options(1, 2, 32));
    s.submit(prompt(1, 3), PLAIN);
    int tokens = answer("ok").length;
    for (int i = 0; i < tokens; i++) {
      s.turn();
      s.advance(Duration.ofSeconds(10));
    }
    s.runUntilIdle();
    for (int i = 0; i < 3; i++) {
      s.submit(prompt(i, 3), PLAIN);
    }
    s.turn();
    EngineBusyException refused =
        catchThrowableOfType(EngineBusyException.class, () -> s.submit(prompt(6, 3), PLAIN));
    assertThat(refused.retryAfter()).isEqualTo(Duration.ofSeconds(2 * 10L * (tokens - 1)));
    s.finish();
  }

  // Closing.

  @Test
  void closingFailsWaitingRequestsAndLetsRunningOnesFinishWithinTheGrace() {
    ManualScheduler s = new ManualScheduler(saying(STORY).build(), options(2, 8, 32));
    Recorder quick = s.submit(prompt(1, 3), PLAIN);
    Recorder slow = s.submit(prompt(2, 3), PLAIN);
    Recorder waiting = s.submit(prompt(3, 3), PLAIN);
    s.turns(2);
    slow.ready(false);
    s.scheduler().closeEntrance(Duration.ofSeconds(10));
    s.turn();
    assertThat(waiting.failure()).isInstanceOf(EngineClosedException.class);
    assertThatThrownBy(() -> s.submit(prompt(4, 3), PLAIN))
        .isInstanceOf(EngineClosedException.class);
    assertThat(s.runUntilIdle()).isEqualTo(Duration.ofSeconds(10).toNanos());
    assertThat(quick.text()).isEqualTo(STORY);
    assertThat(quick.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(slow.hasEnded()).isFalse();
    s.advance(Duration.ofSeconds(10));
    s.finish();
    assertThat(slow.failure()).isInstanceOf(EngineClosedException.class);
  }

  @Test
  void closingAgainShortensTheGraceButDoesNotLengthenIt() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder r = s.submit(prompt(1, 3), PLAIN).ready(false);
    s.turn();
    s.scheduler().closeEntrance(Duration.ofSeconds(10));
    s.turn();
    s.scheduler().closeEntrance(Duration.ofSeconds(20));
    assertThat(s.turn()).isEqualTo(Duration.ofSeconds(10).toNanos());
    s.scheduler().closeEntrance(Duration.ZERO);
    s.finish();
    assertThat(r.failure()).isInstanceOf(EngineClosedException.class);
  }

  @Test
  void cancelStillWorksWhileClosing() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder r = s.submit(prompt(1, 3), PLAIN);
    s.turns(2);
    s.scheduler().closeEntrance(Duration.ofSeconds(10));
    r.handle().cancel();
    s.finish();
    assertThat(r.completed().reason()).isEqualTo(FinishReason.CANCELLED);
  }
}
