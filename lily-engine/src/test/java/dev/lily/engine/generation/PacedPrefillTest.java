package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Rows;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Streams and prompts side by side, on a device whose passes take a known time. */
class PacedPrefillTest {
  private static final Duration BOUND = Duration.ofMillis(250);
  private static final int CHUNK = 256;
  private static final long MS = 1_000_000;
  private static final String STORY = "Once upon a time there was a fox. ".repeat(60);

  /** 30 ms, 3 ms for a row that writes, 2 ms for one of a prompt and as much for its context. */
  private static long nanos(List<Rows> rows) {
    double millis = 30;
    for (Rows r : rows) {
      millis += r.decode() ? 3 : r.count() * (2 + 2 * (r.position() + r.count() / 2.0) / 8192);
    }
    return Math.round(millis * MS);
  }

  private static ManualScheduler scheduler(ScriptedModel.Builder model) {
    ManualScheduler s =
        new ManualScheduler(
            model.pages(8 * 2560, 16).build(),
            new SchedulerOptions(
                8,
                64,
                CHUNK,
                40_000,
                ManualScheduler.STALL,
                PrefixCacheOptions.OFF,
                null,
                SpeculationOptions.OFF,
                BOUND));
    s.taking(PacedPrefillTest::nanos);
    return s;
  }

  /** The longest pause between two outputs of a stream. */
  private static final class Stream {
    private final List<Long> times = new ArrayList<>();
    private final Recorder recorder;

    Stream(ManualScheduler s, int first) {
      recorder =
          new Recorder(
              event -> {
                if (event instanceof GenerationEvent.Output) {
                  times.add(s.now());
                }
              });
      s.submit(prompt(first, 3), false, b -> b, recorder);
    }

    double longestGapMillis() {
      long longest = 0;
      for (int i = 1; i < times.size(); i++) {
        longest = Math.max(longest, times.get(i) - times.get(i - 1));
      }
      return (double) longest / MS;
    }
  }

  private static int promptRows(List<Rows> step) {
    return step.stream().filter(r -> !r.decode()).mapToInt(Rows::count).sum();
  }

  @ParameterizedTest
  @CsvSource({"1,1", "1,2", "4,1", "4,2", "7,1", "7,2"})
  void noStreamPausesForLongerThanTheBoundWhileALongPromptIsRead(int streams, int depth) {
    ManualScheduler s = scheduler(saying(STORY).maxPassesInFlight(depth));
    List<Stream> running = new ArrayList<>();
    for (int i = 0; i < streams; i++) {
      running.add(new Stream(s, i));
    }
    s.turns(10);
    Recorder reading = s.submit(prompt(100, 4096), b -> b.maxTokens(1));
    int before = s.steps().size();
    long from = s.now();
    while (!reading.hasEnded()) {
      s.turn();
    }
    assertThat(running)
        .allSatisfy(r -> assertThat(r.recorder.hasEnded()).as("still writing").isFalse())
        .allSatisfy(r -> assertThat(r.longestGapMillis()).isLessThanOrEqualTo(BOUND.toMillis()));
    long steps = s.steps().size() - before;
    double mean = (double) (s.now() - from) / MS / steps;
    assertThat(mean).as("the time is used").isBetween(0.7 * BOUND.toMillis(), 220.0);
    running.forEach(r -> r.recorder.handle().cancel());
    s.finish();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aPromptAloneIsReadInWholeChunks(int depth) {
    ManualScheduler s = scheduler(saying(STORY).maxPassesInFlight(depth));
    Recorder alone = s.submit(prompt(1, 10 * CHUNK), b -> b.maxTokens(3));
    s.finish();
    assertThat(s.steps().subList(0, 10)).allMatch(step -> promptRows(step) == CHUNK);
    assertThat(alone.hasEnded()).isTrue();
    Stream stream = new Stream(s, 2);
    s.turns(3);
    s.submit(prompt(3, 2000), b -> b.maxTokens(1));
    s.turns(10);
    stream.recorder.handle().cancel();
    s.turns(2);
    int before = s.steps().size();
    s.turns(3);
    assertThat(s.steps().subList(before, before + 3))
        .as("again once the stream is gone")
        .allMatch(step -> promptRows(step) == CHUNK);
    s.finish();
  }

  @Test
  void aStreamWhoseConsumerPausesIsNoReasonToReadSlowly() {
    ManualScheduler s = scheduler(saying(STORY));
    Stream stream = new Stream(s, 1);
    s.turns(5);
    stream.recorder.ready(false);
    s.submit(prompt(2, 1000), b -> b.maxTokens(1));
    int before = s.steps().size();
    s.turns(2);
    assertThat(s.steps().subList(before, before + 2)).allMatch(step -> promptRows(step) == CHUNK);
    stream.recorder.ready(true).handle().cancel();
    s.finish();
  }

  @Test
  void aConstrainedStreamWithTwoPassesInFlightGetsItsTokenWithinTheBound() {
    ManualScheduler s = scheduler(saying("a".repeat(2000)).maxPassesInFlight(2));
    AnswerConstraints constraints =
        new AnswerConstraints(
            Nano.TOKENIZER, Nano.TOKENIZER.vocabularySize(), new int[] {Nano.END});
    GenerationRequest request =
        GenerationRequest.builder(Conversation.of(new Message.User("x")))
            .output(new OutputConstraint.Regex("[a-z]{900,1000}"))
            .build();
    List<Long> times = new ArrayList<>();
    Recorder constrained =
        new Recorder(
            event -> {
              if (event instanceof GenerationEvent.Output) {
                times.add(s.now());
              }
            });
    constrained.submittedAs(
        s.scheduler()
            .submit(
                request,
                new EncodedPrompt(prompt(1, 3), false),
                ManualScheduler.GREEDY,
                constraints.of(request, false),
                constrained));
    s.turns(10);
    Recorder reading = s.submit(prompt(2, 2000), b -> b.maxTokens(1));
    while (!reading.hasEnded()) {
      s.turn();
    }
    assertThat(times).hasSizeGreaterThan(10);
    for (int i = 1; i < times.size(); i++) {
      assertThat((double) (times.get(i) - times.get(i - 1)) / MS)
          .isLessThanOrEqualTo(BOUND.toMillis());
    }
    constrained.handle().cancel();
    s.finish();
  }

  @Test
  void aShortPromptTakesTurnsWithALongOneBesideAStream() {
    ManualScheduler s = scheduler(saying(STORY));
    Stream stream = new Stream(s, 1);
    s.turns(5);
    Recorder longOne = s.submit(prompt(2, 30_000), b -> b.maxTokens(1));
    s.turns(40);
    int before = s.steps().size();
    Recorder brief = s.submit(prompt(3, 200), b -> b.maxTokens(1));
    while (!brief.hasEnded()) {
      s.turn();
    }
    List<List<Rows>> steps = s.steps().subList(before, s.steps().size());
    int slice = steps.stream().mapToInt(PacedPrefillTest::promptRows).min().orElseThrow();
    assertThat(steps)
        .hasSizeLessThanOrEqualTo(2 * Math.ceilDiv(200, slice) + 1)
        .hasSizeLessThan(14);
    assertThat(longOne.hasEnded()).isFalse();
    longOne.handle().cancel();
    stream.recorder.handle().cancel();
    s.finish();
  }

  @Test
  void readsOnEvenIfWritingAloneTakesLongerThanTheBound() {
    ManualScheduler s = scheduler(saying(STORY));
    s.taking(rows -> 20 * nanos(rows));
    Stream stream = new Stream(s, 1);
    s.turns(5);
    Recorder reading = s.submit(prompt(2, 100), b -> b.maxTokens(1));
    int before = s.steps().size();
    while (!reading.hasEnded()) {
      s.turn();
    }
    assertThat(s.steps().size() - before).isLessThanOrEqualTo(100 / PrefillPacer.LEAST_ROWS + 1);
    stream.recorder.handle().cancel();
    s.finish();
  }
}
