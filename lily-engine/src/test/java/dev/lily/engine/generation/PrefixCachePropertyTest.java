package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.model;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import dev.lily.engine.sampling.SamplingParameters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/**
 * Whatever the cache holds, evicts or loses, each session gets the tokens that it would get from an
 * empty one. The scripted model checks beside that slots and pages hold the sequence's own tokens.
 */
class PrefixCachePropertyTest {
  private static final int START = Nano.TOKENIZER.addedToken("<|im_start|>").orElseThrow();

  /** Every token depends on all before it; one in about twelve ends the answer. */
  private static final Script CHAIN =
      (tokens, promptTokens) -> {
        int hash = Arrays.hashCode(tokens) & Integer.MAX_VALUE;
        return hash % 12 == 0 ? Nano.END : hash % Nano.END;
      };

  /**
   * A turn of one of a few conversations.
   *
   * @param conversation which
   * @param edit how its history is changed before: the last messages forgotten; none if 0
   * @param message seed of the new message
   * @param length of the new message
   * @param arrival turns of the scheduler to take after it was submitted
   * @param cancelled whether it is cancelled then
   * @param repeats whether the next prompt has the answer word for word
   */
  record Turn(
      int conversation,
      int edit,
      int message,
      int length,
      int arrival,
      boolean cancelled,
      boolean repeats) {}

  @Provide
  Arbitrary<Turn> turns() {
    return Combinators.combine(
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(1, 40),
            Arbitraries.integers().between(0, 12),
            Arbitraries.integers().between(0, 5).map(i -> i == 0),
            Arbitraries.of(true, false))
        .as(Turn::new);
  }

  @Property(tries = 200)
  void everySessionGetsWhatItWouldGetFromAnEmptyCache(
      @ForAll @Size(min = 1, max = 24) List<@From("turns") Turn> turns,
      @ForAll @IntRange(min = 1, max = 2) int depth,
      @ForAll @IntRange(min = 1, max = 6) int snapshots,
      @ForAll @IntRange(min = 34, max = 80) int pages,
      @ForAll @IntRange(min = 1, max = 30) int chunk,
      @ForAll @IntRange(min = 0, max = 20) int interval,
      @ForAll @IntRange(min = 200, max = 2000) int budget,
      @ForAll @IntRange(min = -240, max = 40) int failing,
      @ForAll @IntRange(min = 1, max = 2000) int maxStepMicros) {
    ScriptedModel model =
        model(CHAIN)
            .maxPassesInFlight(depth)
            .maxSequences(3)
            .maxRows(48)
            .pages(pages, 8)
            .snapshots(snapshots)
            .build();
    if (failing >= 0) {
      model.failPass(failing, new BackendException("scripted"));
    }
    long[] now = {0};
    Random times = new Random(budget);
    model.onPasses(_ -> {}, _ -> now[0] += 1000L * times.nextInt(3000));
    PrefixCacheOptions options = new PrefixCacheOptions(budget, 50, 8, interval, budget % 2 == 0);
    Scheduler scheduler =
        new Scheduler(
            model,
            Nano.TOKENIZER,
            new int[] {Nano.END},
            new SchedulerOptions(
                3,
                64,
                chunk,
                256,
                Duration.ofDays(1),
                options,
                null,
                SpeculationOptions.OFF,
                Duration.ofNanos(1000L * maxStepMicros)),
            () -> now[0]);
    List<List<int[]>> conversations = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      conversations.add(new ArrayList<>(List.of(message(i / 2, 20))));
    }
    List<int[]> prompts = new ArrayList<>();
    List<Recorder> recorders = new ArrayList<>();
    for (Turn turn : turns) {
      List<int[]> history = conversations.get(turn.conversation);
      for (int i = 0; i < turn.edit && history.size() > 1; i++) {
        history.removeLast();
      }
      history.add(message(turn.message, turn.length));
      int[] prompt = prompt(history);
      if (prompt.length > 200) {
        history.subList(1, history.size()).clear();
        continue;
      }
      prompts.add(prompt);
      Recorder recorder = submit(scheduler, prompt);
      recorders.add(recorder);
      for (int i = 0; i < turn.arrival; i++) {
        scheduler.turn();
      }
      if (turn.cancelled) {
        recorder.handle().cancel();
      }
      int[] answer = recorder.logprobs().stream().mapToInt(TokenLogprob::id).toArray();
      history.add(turn.repeats ? answer : message(9, 5));
      assertThat(model.states().snapshots()).isLessThanOrEqualTo(snapshots);
      assertThat(50 * model.states().snapshots() + 8 * model.states().snapshotPages())
          .as("bytes")
          .isLessThanOrEqualTo(budget);
    }
    for (int i = 0; recorders.stream().anyMatch(r -> !r.hasEnded()); i++) {
      assertThat(i).as("turns").isLessThan(10_000);
      scheduler.turn();
    }
    while (scheduler.turn() == 0) {
      assertThat(scheduler.counters().running()).isZero();
    }
    model.assertClean();
    assertThat(scheduler.counters().cacheSnapshots()).isEqualTo(model.states().snapshots());
    for (int i = 0; i < recorders.size(); i++) {
      check(prompts.get(i), recorders.get(i), failing >= 0);
    }
  }

  private static void check(int[] prompt, Recorder recorder, boolean mayFail) {
    List<Integer> heard = recorder.logprobs().stream().map(TokenLogprob::id).toList();
    GenerationEvent end = recorder.events().getLast();
    List<Integer> expected = alone(prompt);
    if (end instanceof GenerationEvent.Completed(FinishReason reason, Usage usage, Timings _)) {
      assertThat(usage.cachedTokens()).isLessThan(prompt.length);
      if (reason != FinishReason.CANCELLED) {
        assertThat(heard).isEqualTo(expected);
      }
    } else {
      assertThat(mayFail).isTrue();
    }
    assertThat(heard).isEqualTo(expected.subList(0, Math.min(heard.size(), expected.size())));
  }

  /** What the script says by itself. */
  private static List<Integer> alone(int[] prompt) {
    int[] tokens = prompt;
    List<Integer> answer = new ArrayList<>();
    while (answer.size() < 20) {
      int next = CHAIN.next(tokens, prompt.length);
      answer.add(next);
      if (next == Nano.END) {
        break;
      }
      tokens = Arrays.copyOf(tokens, tokens.length + 1);
      tokens[tokens.length - 1] = next;
    }
    return answer;
  }

  private static Recorder submit(Scheduler scheduler, int[] prompt) {
    List<Integer> ids = Arrays.stream(prompt).boxed().toList();
    GenerationRequest request =
        GenerationRequest.builder(new RawPrompt.Tokens(ids)).maxTokens(20).topLogprobs(0).build();
    Recorder recorder = new Recorder();
    return recorder.submittedAs(
        scheduler.submit(
            request,
            new EncodedPrompt(prompt, false),
            SamplingParameters.of(request.sampling(), 1, 0),
            recorder));
  }

  private static int[] message(int seed, int length) {
    Random random = new Random(seed);
    return IntStream.concat(IntStream.of(START), random.ints(length, 100, 105)).toArray();
  }

  private static int[] prompt(List<int[]> messages) {
    return messages.stream().flatMapToInt(Arrays::stream).toArray();
  }
}
