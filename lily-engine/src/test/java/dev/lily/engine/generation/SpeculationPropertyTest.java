package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.model;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import dev.lily.engine.sampling.SamplingParameters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterContainer;

/** Whatever is drafted, right or wrong, each session gets the tokens it gets without drafts. */
class SpeculationPropertyTest {

  /**
   * @param rightness of a hundred tokens drafted, how many are what the model will say
   * @param arrival turn before which it is submitted
   * @param cancelAfter turns after arrival; never if negative
   * @param pauseEvery its consumer is not ready in turns divisible by this; 0 for always ready
   */
  record Job(
      int seed,
      int promptLength,
      int maxTokens,
      int minTokens,
      int rightness,
      int arrival,
      int cancelAfter,
      int pauseEvery) {}

  /** Every token depends on all before it; one in about thirty ends the answer. */
  private static final Script CHAIN =
      (tokens, promptTokens) -> {
        int hash = Arrays.hashCode(tokens) & Integer.MAX_VALUE;
        return hash % 30 == 0 ? Nano.END : hash % Nano.END;
      };

  /** Knows what the model will say, and drafts it with mistakes. */
  private static final class Oracle implements DraftSource {
    private final Random random;
    private int[] tokens;
    private final int promptTokens;
    private final int rightness;

    Oracle(int[] prompt) {
      tokens = prompt.clone();
      promptTokens = prompt.length;
      rightness = prompt[0] % 101;
      random = new Random(prompt[0]);
    }

    @Override
    public void add(int token) {
      tokens = Arrays.copyOf(tokens, tokens.length + 1);
      tokens[tokens.length - 1] = token;
    }

    @Override
    public int draft(int[] target, int at, int most) {
      int[] ahead = tokens;
      int count = random.nextInt(most + 1);
      for (int i = 0; i < count; i++) {
        int token = CHAIN.next(ahead, promptTokens);
        ahead = Arrays.copyOf(ahead, ahead.length + 1);
        ahead[ahead.length - 1] = token;
        target[at + i] = random.nextInt(100) < rightness ? token : random.nextInt(Nano.END);
      }
      return count;
    }
  }

  @Provide
  Arbitrary<Job> jobs() {
    return Combinators.combine(
            Arbitraries.integers().between(0, 1_000_000),
            Arbitraries.integers().between(1, 60),
            Arbitraries.integers().between(1, 60),
            Arbitraries.integers().between(0, 12),
            Arbitraries.of(0, 50, 80, 100),
            Arbitraries.integers().between(0, 30),
            Arbitraries.integers().between(-20, 20),
            Arbitraries.integers().between(0, 4))
        .as(
            (seed, prompt, max, min, right, arrival, cancel, pause) ->
                new Job(
                    seed,
                    prompt,
                    max,
                    Math.min(min, max),
                    right,
                    arrival,
                    cancel,
                    pause == 1 ? 0 : pause));
  }

  @Property(tries = 300)
  void everySessionGetsWhatItWouldGetWithoutDrafts(
      @ForAll @Size(min = 1, max = 8) List<@From("jobs") Job> jobs,
      @ForAll @IntRange(min = 1, max = 2) int depth,
      @ForAll @IntRange(min = 1, max = 4) int places,
      @ForAll @IntRange(min = 1, max = 9) int draftTokens,
      @ForAll @IntRange(min = 15, max = 40) int pages) {
    Builder rows = new Builder(depth, places, draftTokens, pages);
    List<Heard> plain = run(rows.build(), places, SpeculationOptions.OFF, jobs, PromptLookup::new);
    SpeculationOptions on =
        new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, draftTokens);
    List<Heard> drafted = run(rows.build(), places, on, jobs, Oracle::new);
    for (int i = 0; i < jobs.size(); i++) {
      Heard expected = plain.get(i);
      Heard actual = drafted.get(i);
      if (actual.reason == FinishReason.CANCELLED || expected.reason == FinishReason.CANCELLED) {
        int common = Math.min(actual.tokens.size(), expected.tokens.size());
        assertThat(actual.tokens.subList(0, common)).isEqualTo(expected.tokens.subList(0, common));
      } else {
        assertThat(actual).as("%s", jobs.get(i)).isEqualTo(expected);
      }
    }
  }

  private record Builder(int depth, int places, int draftTokens, int pages) {
    ScriptedModel build() {
      return model(CHAIN)
          .maxPassesInFlight(depth)
          .maxSequences(places)
          .draftTokens(draftTokens)
          .maxRows(places * (1 + draftTokens) + 16)
          .snapshots(3)
          .pages(pages, 8)
          .build();
    }
  }

  /** What a session's listener was told. */
  record Heard(List<Integer> tokens, String text, FinishReason reason, Usage usage) {}

  private static long drafted;
  private static long accepted;

  @AfterContainer
  static void itIsAboutSomething() {
    assertThat(accepted).isBetween(drafted / 10, drafted * 9 / 10).isPositive();
  }

  private static List<Heard> run(
      ScriptedModel model,
      int places,
      SpeculationOptions speculation,
      List<Job> jobs,
      Function<int[], DraftSource> sources) {
    long[] now = {0};
    Scheduler scheduler =
        new Scheduler(
            model,
            Nano.TOKENIZER,
            new int[] {Nano.END},
            new SchedulerOptions(
                places,
                jobs.size(),
                16,
                4096,
                Duration.ofDays(1),
                PrefixCacheOptions.OFF,
                null,
                speculation,
                SchedulerOptions.DEFAULT_MAX_STEP_TIME),
            () -> now[0] += 1000,
            sources);
    List<Recorder> recorders = new ArrayList<>();
    jobs.forEach(_ -> recorders.add(new Recorder()));
    int remaining = jobs.size();
    for (int turn = 0; remaining > 0; turn++) {
      assertThat(turn).as("turns").isLessThan(10_000);
      for (int i = 0; i < jobs.size(); i++) {
        Job job = jobs.get(i);
        Recorder recorder = recorders.get(i);
        if (job.arrival == turn) {
          submit(scheduler, job, recorder);
        }
        if (job.cancelAfter >= 0 && job.arrival + job.cancelAfter == turn) {
          recorder.handle().cancel();
        }
        recorder.ready(job.pauseEvery == 0 || turn % job.pauseEvery != 0);
      }
      scheduler.turn();
      remaining = (int) recorders.stream().filter(r -> !r.hasEnded()).count();
    }
    while (scheduler.turn() == 0) {
      assertThat(scheduler.counters().running()).isZero();
    }
    model.assertClean();
    drafted += scheduler.counters().draftedTokens();
    accepted += scheduler.counters().acceptedTokens();
    return recorders.stream()
        .map(
            r ->
                new Heard(
                    r.logprobs().stream().map(TokenLogprob::id).toList(),
                    r.text(),
                    r.completed().reason(),
                    r.completed().usage()))
        .toList();
  }

  private static void submit(Scheduler scheduler, Job job, Recorder recorder) {
    int[] prompt = new int[job.promptLength];
    for (int i = 0; i < prompt.length; i++) {
      prompt[i] = i == 0 ? job.rightness : (job.seed + 31 * i) % Nano.END;
    }
    recorder.submittedAs(
        scheduler.submit(
            GenerationRequest.builder(Conversation.of(new Message.User("x")))
                .maxTokens(job.maxTokens)
                .minTokens(job.minTokens)
                .build(),
            new EncodedPrompt(prompt, false),
            new SamplingParameters(0, 0, 1, 0, 0, 0, 1, new int[0], new float[0], 1, 0),
            recorder));
  }
}
