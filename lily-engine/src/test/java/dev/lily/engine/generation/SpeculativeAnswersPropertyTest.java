package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LoadedModel;
import dev.lily.engine.ModelLoader;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.model.StatePool;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

/**
 * The test model with drafts, right and wrong, and without: the same tokens, log-probabilities
 * equal to the last bit, the same end and the same usage, for every way to sample, also behind the
 * state that an answer left in the prefix cache.
 */
class SpeculativeAnswersPropertyTest {
  private static final int PLACES = 3;
  private static final int DRAFT_TOKENS = 6;

  /** A model with a scheduler that takes its turns in the test. */
  private record Engine(LoadedModel loaded, Scheduler scheduler) {}

  private static Engine plain;
  private static Engine drafting;
  private static Function<int[], DraftSource> sources = _ -> none();

  /**
   * @param rightness of a hundred tokens drafted, how many are what the model will say
   */
  record Job(
      int seed,
      int promptLength,
      SamplingOptions sampling,
      int topLogprobs,
      int maxTokens,
      int minTokens,
      boolean stops,
      int rightness) {

    int[] prompt() {
      int[] words = Nano.ids(" Mia is a red fox and Ben has 3 blue boats in Rome. ".repeat(3));
      int from = seed % 20;
      return Arrays.copyOfRange(words, from, from + promptLength);
    }
  }

  /** Drafts what another run said, with mistakes; nothing once the answers have parted. */
  private static final class Echo implements DraftSource {
    private final List<Integer> expected;
    private final Job job;
    private final Random random;
    private int size;

    Echo(Job job, List<Integer> expected) {
      this.job = job;
      this.expected = expected;
      random = new Random(job.seed);
    }

    @Override
    public void add(int token) {
      size++;
    }

    @Override
    public int draft(int[] target, int at, int most) {
      int count = Math.min(1 + random.nextInt(most), expected.size() - size);
      for (int i = 0; i < count; i++) {
        boolean right = random.nextInt(100) < job.rightness;
        target[at + i] = right ? expected.get(size + i) : random.nextInt(Nano.END);
      }
      return Math.max(0, count);
    }
  }

  @BeforeContainer
  static void open() {
    plain = open(SpeculationOptions.OFF);
    drafting = open(new SpeculationOptions(SpeculationOptions.Mode.PROMPT_LOOKUP, DRAFT_TOKENS));
  }

  @AfterContainer
  static void close() {
    Counters counters = drafting.scheduler.counters();
    assertThat(counters.acceptedTokens()).as("the property is about something").isPositive();
    assertThat(counters.draftedTokens()).isGreaterThan(counters.acceptedTokens());
    assertThat(counters.cacheHits()).isPositive();
    plain.loaded.close();
    drafting.loaded.close();
  }

  private static Engine open(SpeculationOptions speculation) {
    LoadedModel loaded =
        ModelLoader.load(
            EngineOptions.builder(
                    Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir"))))
                .contextLength(256)
                .maxSessions(PLACES)
                .prefillChunk(32)
                .speculation(speculation)
                .build());
    long[] now = {0};
    return new Engine(
        loaded,
        new Scheduler(
            loaded.model(),
            loaded.tokenizer(),
            loaded.stopTokens(),
            new SchedulerOptions(
                PLACES,
                8,
                32,
                256,
                Duration.ofDays(1),
                cache(loaded),
                null,
                speculation,
                SchedulerOptions.DEFAULT_MAX_STEP_TIME),
            () -> now[0] += 1000,
            prompt -> sources.apply(prompt)));
  }

  @Provide
  Arbitrary<SamplingOptions> options() {
    return Arbitraries.of(
        SamplingOptions.GREEDY,
        SamplingOptions.builder()
            .temperature(0.0)
            .presencePenalty(1.0)
            .frequencyPenalty(0.5)
            .repetitionPenalty(1.3)
            .build(),
        SamplingOptions.builder().temperature(1.0).build(),
        SamplingOptions.builder()
            .temperature(0.8)
            .topK(20)
            .topP(0.9)
            .minP(0.02)
            .presencePenalty(1.5)
            .repetitionPenalty(1.1)
            .logitBias(Map.of(300, 1.5, Nano.END, -2.0))
            .build());
  }

  @Provide
  Arbitrary<Job> jobs() {
    return Combinators.combine(
            Arbitraries.integers().between(0, 1_000_000),
            Arbitraries.integers().between(1, 40),
            options(),
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(1, 40),
            Arbitraries.integers().between(0, 12),
            Arbitraries.of(true, false),
            Arbitraries.of(0, 60, 90, 100))
        .as(
            (seed, prompt, sampling, logprobs, max, min, stops, right) ->
                new Job(seed, prompt, sampling, logprobs, max, Math.min(min, max), stops, right));
  }

  @Property(tries = 20, shrinking = ShrinkingMode.OFF)
  void answersAreThoseWithoutDrafts(@ForAll @Size(min = 1, max = 4) List<@From("jobs") Job> jobs) {
    List<int[]> prompts = jobs.stream().map(Job::prompt).toList();
    List<Heard> expected = run(plain, jobs, prompts);
    List<int[]> longer =
        IntStream.range(0, jobs.size())
            .mapToObj(i -> followUp(prompts.get(i), expected.get(i)))
            .toList();
    List<Heard> expectedBehind = run(plain, jobs, longer);
    sources = echoes(jobs, expected);
    assertThat(run(drafting, jobs, prompts)).usingRecursiveComparison().isEqualTo(expected);
    sources = echoes(jobs, expectedBehind);
    assertThat(run(drafting, jobs, longer)).usingRecursiveComparison().isEqualTo(expectedBehind);
  }

  /** Sessions are admitted in the order of the jobs. */
  private static Function<int[], DraftSource> echoes(List<Job> jobs, List<Heard> expected) {
    int[] next = {0};
    return _ -> new Echo(jobs.get(next[0]), expected.get(next[0]++).tokens);
  }

  private static int[] followUp(int[] prompt, Heard heard) {
    int[] answer = heard.tokens.stream().mapToInt(Integer::intValue).toArray();
    int[] all = Arrays.copyOf(prompt, prompt.length + answer.length + 3);
    System.arraycopy(answer, 0, all, prompt.length, answer.length);
    return all;
  }

  private static DraftSource none() {
    return new Echo(new Job(0, 1, SamplingOptions.GREEDY, -1, 1, 0, false, 0), List.of());
  }

  /** What a session's listener was told. */
  record Heard(
      List<Integer> tokens,
      List<TokenLogprob> logprobs,
      String text,
      FinishReason reason,
      int promptTokens,
      int completionTokens) {}

  private static List<Heard> run(Engine engine, List<Job> jobs, List<int[]> prompts) {
    List<Recorder> recorders = new ArrayList<>();
    for (int i = 0; i < jobs.size(); i++) {
      recorders.add(submit(engine.scheduler, jobs.get(i), prompts.get(i)));
    }
    while (engine.scheduler.turn() == 0) {
      assertThat(engine.scheduler.counters().failed()).isZero();
    }
    StatePool states = engine.loaded.model().states();
    assertThat(states.usedSlots()).isEqualTo(states.snapshots());
    assertThat(states.usedPages()).isEqualTo(states.snapshotPages());
    return recorders.stream().map(SpeculativeAnswersPropertyTest::heard).toList();
  }

  private static PrefixCacheOptions cache(LoadedModel loaded) {
    StateLayout layout = loaded.model().layout();
    return new PrefixCacheOptions(
        1 << 30, layout.slotElements() * Float.BYTES, layout.pageElements() * 2, 0, false);
  }

  private static Recorder submit(Scheduler scheduler, Job job, int[] prompt) {
    GenerationRequest.Builder request =
        GenerationRequest.builder(new RawPrompt.Text("x"))
            .maxTokens(job.maxTokens)
            .minTokens(job.minTokens);
    if (job.stops) {
      request.stopStrings(List.of(" fox", "e"));
    }
    Recorder recorder = new Recorder();
    return recorder.submittedAs(
        scheduler.submit(
            request.build(),
            new EncodedPrompt(prompt, false),
            SamplingParameters.of(job.sampling, job.seed, job.topLogprobs),
            recorder));
  }

  private static Heard heard(Recorder r) {
    Usage usage = r.completed().usage();
    return new Heard(
        r.logprobs().stream().map(TokenLogprob::id).toList(),
        r.logprobs(),
        r.text(),
        r.completed().reason(),
        usage.promptTokens(),
        usage.completionTokens());
  }
}
