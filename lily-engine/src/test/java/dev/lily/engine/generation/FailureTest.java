package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.answer;
import static dev.lily.engine.generation.ManualScheduler.model;
import static dev.lily.engine.generation.ManualScheduler.options;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import java.time.Duration;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What breaks below, and what survives it. */
class FailureTest {
  private static final String STORY = "Once upon a time there was a fox";
  private static final UnaryOperator<GenerationRequest.Builder> PLAIN = b -> b;

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPassThatFailsFailsItsSessionsAndNoOthers(int depth) {
    ScriptedModel model = saying(STORY).maxPassesInFlight(depth).build();
    model.failPass(4);
    ManualScheduler s = new ManualScheduler(model, options(2, 8, 32));
    Recorder first = s.submit(prompt(1, 3), PLAIN);
    Recorder second = s.submit(prompt(2, 40), PLAIN);
    Recorder later = s.submit(prompt(3, 3), PLAIN);
    s.finish();
    assertThat(first.failure())
        .isInstanceOf(DeviceFailureException.class)
        .hasMessageContaining("scripted failure of pass 4")
        .hasCauseInstanceOf(BackendException.class);
    assertThat(second.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(first.text()).isNotEmpty();
    assertThat(later.text()).isEqualTo(STORY);
    Counters counters = s.scheduler().counters();
    assertThat(counters.failed()).isEqualTo(2);
    assertThat(counters.completed()).isEqualTo(1);
    assertThat(counters.lastFailure()).contains("scripted failure of pass 4");
  }

  @Test
  void aFailedPassSparesSessionsThatWereNotInIt() {
    ScriptedModel model = saying(STORY).build();
    model.failPass(2);
    ManualScheduler s = ManualScheduler.of(model);
    Recorder paused = s.submit(prompt(1, 3), PLAIN);
    Recorder unlucky = s.submit(prompt(2, 3), PLAIN);
    s.turns(2);
    paused.ready(false);
    s.turn();
    assertThat(unlucky.failure()).isInstanceOf(DeviceFailureException.class);
    paused.ready(true);
    s.finish();
    assertThat(paused.text()).isEqualTo(STORY);
  }

  /** A slot is cleared at the start of some pass; it must not be one that its session is not in. */
  @Test
  void aFailedPassSparesASessionThatHasNotBegun() {
    ScriptedModel model = saying(STORY).build();
    model.failPass(0);
    ManualScheduler s = ManualScheduler.of(model);
    Recorder paused = new Recorder();
    paused.ready(false);
    s.submit(prompt(1, 3), false, PLAIN, paused);
    Recorder unlucky = s.submit(prompt(2, 3), PLAIN);
    s.turn();
    assertThat(unlucky.failure()).isInstanceOf(DeviceFailureException.class);
    paused.ready(true);
    s.finish();
    assertThat(paused.text()).isEqualTo(STORY);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aFailedPassSparesASessionWhosePromptDidNotFitIntoIt(int depth) {
    ScriptedModel model = saying(STORY).maxPassesInFlight(depth).build();
    model.failPass(0);
    ManualScheduler s = ManualScheduler.of(model);
    Recorder unlucky = s.submit(prompt(1, 40), PLAIN);
    Recorder next = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertThat(unlucky.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(next.text()).isEqualTo(STORY);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPassThatIsRefusedFailsItsSessionsAndTheEngineLivesOn(int depth) {
    ScriptedModel model = saying(STORY).maxPassesInFlight(depth).build();
    model.failForward(3);
    ManualScheduler s = ManualScheduler.of(model);
    Recorder first = s.submit(prompt(1, 3), PLAIN);
    s.finish();
    assertThat(first.failure())
        .isInstanceOf(DeviceFailureException.class)
        .hasMessageContaining("writing the answer");
    Recorder second = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertThat(second.text()).isEqualTo(STORY);
  }

  @Test
  void everyPassMayFail() {
    ScriptedModel model = saying(STORY).maxPassesInFlight(2).build();
    for (int i = 0; i < 100; i++) {
      model.failPass(i);
    }
    ManualScheduler s = ManualScheduler.of(model);
    for (int i = 0; i < 10; i++) {
      Recorder r = s.submit(prompt(i, 3), PLAIN);
      s.finish();
      assertThat(r.failure()).isInstanceOf(DeviceFailureException.class);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void anUnexpectedErrorFailsTheSessionsOfThePass(int depth) {
    ScriptedModel model = saying(STORY).maxPassesInFlight(depth).build();
    model.failPass(2, new IllegalArgumentException("scripted defect"));
    ManualScheduler s = ManualScheduler.of(model);
    Recorder first = s.submit(prompt(1, 3), PLAIN);
    s.finish();
    assertThat(first.failure())
        .isInstanceOf(EngineFailureException.class)
        .hasMessageContaining("scripted defect")
        .hasCauseInstanceOf(IllegalArgumentException.class);
    Recorder second = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertThat(second.text()).isEqualTo(STORY);
  }

  @Test
  void aStateThatCannotBeBegunFailsItsRequestOnly() {
    ScriptedModel model = saying(STORY).build();
    model.device().failNext("beginSampling", new BackendException("scripted refusal of a slot"));
    ManualScheduler s = ManualScheduler.of(model);
    Recorder first = s.submit(prompt(1, 3), PLAIN);
    Recorder second = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertThat(first.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(second.text()).isEqualTo(STORY);
  }

  static Stream<Throwable> shortages() {
    return Stream.of(
        new BackendException("scripted shortage of memory"),
        new OutOfMemoryError("scripted shortage of memory"));
  }

  private static void assertFailedBy(Throwable shortage, Recorder recorder) {
    assertThat(recorder.failure())
        .isInstanceOf(
            shortage instanceof BackendException
                ? DeviceFailureException.class
                : EngineFailureException.class)
        .hasMessageContaining("scripted shortage of memory")
        .hasCause(shortage);
  }

  @ParameterizedTest
  @MethodSource("shortages")
  void memoryThatIsShortForAStateFailsItsRequestOnly(Throwable shortage) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder running = s.submit(prompt(1, 3), PLAIN);
    s.turns(3);
    s.model().device().failNext("clearSlot", shortage);
    Recorder unlucky = s.submit(prompt(2, 3), PLAIN);
    Recorder next = s.submit(prompt(3, 3), PLAIN);
    s.finish();
    assertFailedBy(shortage, unlucky);
    assertThat(running.text()).isEqualTo(STORY);
    assertThat(next.text()).isEqualTo(STORY);
    assertThat(s.scheduler().counters().failed()).isEqualTo(1);
  }

  @ParameterizedTest
  @MethodSource("shortages")
  void memoryThatIsShortInMidAnswerFailsItsRequestOnly(Throwable shortage) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).build());
    Recorder running = s.submit(prompt(1, 3), PLAIN);
    Recorder unlucky = s.submit(prompt(2, 3), b -> b.minTokens(4)); // its mask is lifted then
    s.turns(3);
    s.model().device().failNext("maskTokens", shortage);
    Recorder next = s.submit(prompt(3, 3), PLAIN);
    s.finish();
    assertFailedBy(shortage, unlucky);
    assertThat(unlucky.outputs()).isNotEmpty();
    assertThat(running.text()).isEqualTo(STORY);
    assertThat(next.text()).isEqualTo(STORY);
  }

  @ParameterizedTest
  @MethodSource("shortages")
  void memoryThatIsShortForAPassSparesWhoIsNotInIt(Throwable shortage) {
    ScriptedModel model = saying(STORY).maxPassesInFlight(2).build();
    model.failForward(3, shortage);
    ManualScheduler s = new ManualScheduler(model, options(1, 8, 32));
    Recorder unlucky = s.submit(prompt(1, 3), PLAIN);
    Recorder waiting = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertFailedBy(shortage, unlucky);
    assertThat(waiting.text()).isEqualTo(STORY);
  }

  @Test
  void aTokenTheModelDoesNotHaveFailsItsRequestOnly() {
    int beyond = Nano.TOKENIZER.vocabularySize();
    int[] story = answer(STORY);
    Script script =
        (tokens, promptTokens) -> {
          int i = tokens.length - promptTokens;
          return tokens[0] == 1 && i == 2 ? beyond : story[Math.min(i, story.length - 1)];
        };
    ManualScheduler s =
        ManualScheduler.of(ScriptedModel.builder(script).vocabularySize(beyond + 10).build());
    Recorder bad = s.submit(prompt(1, 3), PLAIN);
    Recorder good = s.submit(prompt(2, 3), PLAIN);
    s.finish();
    assertThat(bad.failure())
        .isInstanceOf(EngineFailureException.class)
        .hasMessageContaining(String.valueOf(beyond));
    assertThat(good.text()).isEqualTo(STORY);
  }

  @Test
  void aRequestForWhichNoStateWillEverFitFailsInsteadOfWaiting() {
    ScriptedModel model = saying(STORY).pages(2, 10).build();
    ManualScheduler s = ManualScheduler.of(model);
    Recorder big = s.submit(prompt(1, 15), b -> b.maxTokens(6));
    Recorder small = s.submit(prompt(2, 5), b -> b.maxTokens(6));
    s.finish();
    assertThat(big.failure()).isInstanceOf(EngineFailureException.class);
    assertThat(small.completed().usage().completionTokens()).isEqualTo(6);
  }

  @Test
  void anErrorOutsideAnyRequestFailsAllOfThemAndTheNextIsServed() {
    ScriptedModel model = model(Script.saying(answer(STORY))).maxPassesInFlight(2).build();
    long[] failing = {0};
    Scheduler scheduler =
        new Scheduler(
            model,
            Nano.TOKENIZER,
            new int[] {Nano.END},
            new SchedulerOptions(1, 8, 32, 4096, Duration.ofSeconds(60)),
            () -> {
              if (failing[0]-- == 1) {
                throw new AssertionError("scripted defect of the clock");
              }
              return 0;
            });
    Recorder running = submit(scheduler, 1);
    Recorder waiting = submit(scheduler, 2);
    scheduler.turn();
    scheduler.turn();
    failing[0] = 1;
    while (scheduler.turn() == 0) {
      assertThat(scheduler.counters().steps()).isLessThan(100);
    }
    assertThat(running.failure()).isInstanceOf(EngineFailureException.class);
    assertThat(waiting.failure()).isInstanceOf(EngineFailureException.class);
    assertThat(scheduler.counters().lastFailure()).contains("scripted defect of the clock");
    Recorder next = submit(scheduler, 3);
    while (scheduler.turn() == 0) {
      assertThat(scheduler.counters().steps()).isLessThan(100);
    }
    assertThat(next.text()).isEqualTo(STORY);
    model.assertClean();
  }

  private static Recorder submit(Scheduler scheduler, int first) {
    Recorder recorder = new Recorder();
    return recorder.submittedAs(
        scheduler.submit(
            GenerationRequest.of("x"),
            new EncodedPrompt(prompt(first, 3), false),
            ManualScheduler.GREEDY,
            recorder));
  }
}
