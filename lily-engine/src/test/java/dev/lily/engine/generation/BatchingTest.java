package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.answer;
import static dev.lily.engine.generation.ManualScheduler.model;
import static dev.lily.engine.generation.ManualScheduler.options;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.model.ScriptedModel.Rows;
import dev.lily.engine.model.ScriptedModel.Script;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What goes into a pass. */
class BatchingTest {
  private static final String STORY = "Once upon a time there was a fox who lived in the woods";

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void decodesAllRunningSessionsInOnePass(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    List<Recorder> recorders = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      recorders.add(s.submit(prompt(10 + i, 3), r -> r));
    }
    s.finish();
    assertThat(s.steps().getFirst()).hasSize(8).allMatch(rows -> !rows.decode() && rows.sampled());
    for (List<Rows> step : s.steps().subList(1, answer(STORY).length)) {
      assertThat(step).hasSize(8).allMatch(rows -> rows.decode() && rows.count() == 1);
    }
    assertThat(recorders).allSatisfy(r -> assertThat(r.text()).isEqualTo(STORY));
  }

  @Test
  void boundsThePromptRowsOfAPassOverAllSessions() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    for (int i = 0; i < 5; i++) {
      s.submit(prompt(i, 70), r -> r);
    }
    s.finish();
    for (List<Rows> step : s.steps()) {
      int promptRows = step.stream().filter(r -> !r.decode()).mapToInt(Rows::count).sum();
      assertThat(promptRows).isLessThanOrEqualTo(32);
    }
    assertThat(s.steps().stream().flatMap(List::stream).filter(r -> !r.decode()))
        .extracting(Rows::count)
        .satisfies(c -> assertThat(c.stream().mapToInt(Integer::intValue).sum()).isEqualTo(350));
  }

  @Test
  void takesTurnsBetweenLongPrompts() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    s.submit(prompt(1, 96), r -> r);
    s.submit(prompt(2, 96), r -> r);
    s.turns(6);
    assertThat(s.steps()).hasSize(6).allMatch(step -> step.stream().anyMatch(r -> !r.decode()));
    assertThat(s.steps().stream().map(step -> step.getLast().slot()))
        .containsExactly(0, 1, 0, 1, 0, 1);
  }

  @Test
  void givesRowsThatOnePromptLeavesToTheNext() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    s.submit(prompt(1, 20), r -> r);
    s.submit(prompt(2, 50), r -> r);
    s.turn();
    assertThat(s.steps().getFirst())
        .containsExactly(new Rows(0, 0, 20, true, false), new Rows(1, 0, 12, false, false));
    s.finish();
  }

  @Test
  void aShortPromptDoesNotWaitForALongOne() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    s.submit(prompt(1, 2000), r -> r);
    s.turns(3);
    Recorder brief = s.submit(prompt(2, 5), r -> r);
    int answer = answer("ok").length;
    s.turns(1 + answer);
    assertThat(brief.text()).isEqualTo("ok");
    assertThat(brief.hasEnded()).isTrue();
    s.finish();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void keepsWritingWhileALongPromptIsRead(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    s.submit(prompt(1, 3), r -> r);
    s.turns(2);
    s.submit(prompt(2, 200), r -> r);
    int before = s.steps().size();
    s.turns(7);
    assertThat(s.steps()).hasSize(before + 7);
    for (List<Rows> step : s.steps().subList(before, before + 7)) {
      assertThat(step.getFirst().decode()).isTrue();
      assertThat(step.getLast().decode()).isFalse();
    }
    s.finish();
  }

  @ParameterizedTest
  @CsvSource({"1,1", "31,1", "32,1", "33,2", "64,2", "65,3"})
  void samplesOnceAtTheEndOfThePromptWhereverItsSlicesEnd(int length, int slices) {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    Recorder r = s.submit(prompt(1, length), b -> b);
    s.finish();
    List<Rows> slicesRun =
        s.steps().stream().flatMap(List::stream).filter(rows -> !rows.decode()).toList();
    assertThat(slicesRun).hasSize(slices);
    assertThat(slicesRun.subList(0, slices - 1)).noneMatch(Rows::sampled);
    assertThat(slicesRun.getLast().sampled()).isTrue();
    assertThat(r.text()).isEqualTo("ok");
    assertThat(r.events().stream().filter(GenerationEvent.PromptProgress.class::isInstance))
        .hasSize(slices)
        .last()
        .isEqualTo(new GenerationEvent.PromptProgress(length, length));
  }

  @Test
  void submitsAPassBeforeReadingTheOneBeforeIt() {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(2).build());
    Recorder r = s.submit(prompt(1, 3), b -> b);
    s.turn();
    assertThat(s.steps()).hasSize(1);
    assertThat(r.events()).isEmpty();
    s.turn();
    assertThat(s.steps()).hasSize(2);
    assertThat(r.events()).contains(new GenerationEvent.PromptProgress(3, 3));
    s.finish();
  }

  @ParameterizedTest
  @CsvSource({"1,0", "2,1"})
  void submitsNoMoreThanOneRowTooManyPerPassInFlight(int depth, int tooMany) {
    ManualScheduler s = ManualScheduler.of(saying("ok").maxPassesInFlight(depth).build());
    s.submit(prompt(1, 3), b -> b);
    s.finish();
    assertThat(s.steps()).hasSize(answer("ok").length + tooMany);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void submitsNoRowBeyondTheTokenLimit(int depth) {
    ManualScheduler s = ManualScheduler.of(saying(STORY).maxPassesInFlight(depth).build());
    s.submit(prompt(1, 3), b -> b.maxTokens(5));
    s.finish();
    assertThat(s.steps()).hasSize(5);
  }

  @Test
  void admitsInOrderAsStatesFit() {
    // Ten pages of ten tokens: 60 + 60 tokens never fit together, 60 + 20 do.
    ManualScheduler s =
        new ManualScheduler(saying(STORY).pages(10, 10).build(), options(8, 64, 32));
    Recorder first = s.submit(prompt(1, 50), b -> b.maxTokens(10));
    Recorder second = s.submit(prompt(2, 50), b -> b.maxTokens(10));
    Recorder third = s.submit(prompt(3, 10), b -> b.maxTokens(10));
    s.turn();
    assertThat(s.scheduler().counters().running()).isEqualTo(1);
    assertThat(s.scheduler().queued()).isEqualTo(2);
    while (!first.hasEnded()) {
      s.turn();
    }
    s.turn();
    assertThat(s.scheduler().counters().running()).isEqualTo(2);
    assertThat(second.hasEnded() || third.hasEnded()).isFalse();
    s.finish();
    assertThat(List.of(first, second, third))
        .allSatisfy(r -> assertThat(r.completed().usage().completionTokens()).isEqualTo(10));
  }

  @Test
  void runsNoMoreSessionsThanAllowed() {
    ManualScheduler s = new ManualScheduler(saying("ok").build(), options(2, 64, 32));
    for (int i = 0; i < 5; i++) {
      s.submit(prompt(i, 3), b -> b);
    }
    s.turn();
    assertThat(s.scheduler().counters().running()).isEqualTo(2);
    assertThat(s.scheduler().queued()).isEqualTo(3);
    s.finish();
    assertThat(s.steps()).allMatch(step -> step.size() <= 2);
    assertThat(s.scheduler().counters().completed()).isEqualTo(5);
  }

  @Test
  void leavesRoomForPromptsWhenAPassHoldsNoMoreRowsThanSessions() {
    ManualScheduler s = new ManualScheduler(saying(STORY).maxRows(2).build(), options(8, 64, 32));
    Recorder first = s.submit(prompt(1, 3), b -> b);
    Recorder second = s.submit(prompt(2, 3), b -> b);
    Recorder third = s.submit(prompt(3, 3), b -> b);
    s.finish();
    assertThat(List.of(first, second, third))
        .allSatisfy(r -> assertThat(r.text()).isEqualTo(STORY));
    assertThat(s.steps()).allMatch(step -> step.stream().mapToInt(Rows::count).sum() <= 2);
  }

  @Test
  void givesEachSessionTheTokensOfItsOwnPrompt() {
    Script byFirstToken =
        (tokens, promptTokens) -> {
          int[] answer = answer("fox " + tokens[0] + " says hello");
          return answer[Math.min(tokens.length - promptTokens, answer.length - 1)];
        };
    ManualScheduler s = ManualScheduler.of(model(byFirstToken).build());
    List<Recorder> recorders = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      recorders.add(s.submit(prompt(i, 1 + 7 * i), b -> b));
      s.turn();
    }
    s.finish();
    for (int i = 0; i < 16; i++) {
      assertThat(recorders.get(i).text()).isEqualTo("fox " + i + " says hello");
    }
  }

  @Test
  void restsWhenThereIsNothingToDo() {
    ManualScheduler s = ManualScheduler.of(saying("ok").build());
    assertThat(s.turn()).isEqualTo(Nanos.FOREVER);
    s.submit(prompt(1, 3), b -> b);
    s.finish();
    assertThat(s.turn()).isEqualTo(Nanos.FOREVER);
  }
}
