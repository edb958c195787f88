package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.generation.ResultCollector;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

/**
 * Random edits and forks of token lists on the test model, with a cache too small for them and
 * prefill chunks that depend on what it holds: every answer has the tokens and, to the last bit,
 * the log-probabilities that an engine without a cache gives.
 */
class CachedAnswersPropertyTest {
  private static final long CACHE_BYTES = 7 << 20; // five or six snapshots

  private static LilyEngine warm;
  private static LilyEngine cold;

  private final Map<List<Integer>, List<List<Object>>> known = new HashMap<>();

  @BeforeContainer
  static void open() {
    warm = open(CACHE_BYTES);
    cold = open(0);
  }

  private static LilyEngine open(long cacheBytes) {
    return LilyEngine.open(
        EngineOptions.builder(Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir"))))
            .contextLength(256)
            .maxSessions(3)
            .prefillChunk(24)
            .cacheBytes(cacheBytes)
            .snapshotInterval(16)
            .build());
  }

  @AfterContainer
  static void close() {
    warm.close();
    cold.close();
    EngineStats stats = warm.stats();
    assertThat(stats.kvPagesUsed()).isZero();
    assertThat(stats.failed()).isZero();
    assertThat(stats.cache().hits()).as("the property is about something").isPositive();
    assertThat(stats.cache().evictions()).isPositive();
    assertThat(stats.cache().bytes()).isLessThanOrEqualTo(CACHE_BYTES);
  }

  /**
   * The next prompt, made from one before.
   *
   * @param of which one, counted from the last
   * @param kept thousandths of its tokens that stay
   * @param added tokens behind them
   * @param repeats whether the answer to it stays first
   * @param alone whether it is awaited before the next one is sent
   */
  record Step(int of, int kept, int added, boolean repeats, boolean alone) {}

  @Provide
  Arbitrary<Step> steps() {
    return Combinators.combine(
            Arbitraries.integers().between(1, 4),
            Arbitraries.integers().between(0, 1000),
            Arbitraries.integers().between(1, 50),
            Arbitraries.of(true, false),
            Arbitraries.of(true, true, false))
        .as(Step::new);
  }

  @Property(tries = 8)
  void answersAreThoseOfAnEngineWithoutACache(
      @ForAll @Size(min = 2, max = 8) List<@From("steps") Step> steps, @ForAll long seed)
      throws InterruptedException {
    Random random = new Random(seed % 5);
    List<List<Integer>> prompts = new ArrayList<>(List.of(tokens(random, 40)));
    List<ResultCollector> results = new ArrayList<>();
    List<GenerationHandle> handles = new ArrayList<>();
    send(prompts.getFirst(), results, handles);
    handles.getFirst().await();
    for (Step step : steps) {
      int base = Math.max(0, prompts.size() - step.of);
      List<Integer> prompt = new ArrayList<>(prompts.get(base));
      if (step.repeats && handles.get(base).isDone()) {
        results.get(base).result().logprobs().forEach(token -> prompt.add(token.id()));
      } else {
        prompt.subList(prompt.size() * step.kept / 1000, prompt.size()).clear();
      }
      prompt.addAll(tokens(random, step.added));
      if (prompt.size() > 200) {
        prompt.subList(100, prompt.size()).clear();
      }
      prompts.add(prompt);
      send(prompt, results, handles);
      if (step.alone) {
        handles.getLast().await();
      }
    }
    for (int i = 0; i < prompts.size(); i++) {
      handles.get(i).await();
      assertThat(values(results.get(i).result()))
          .isEqualTo(known.computeIfAbsent(prompts.get(i), p -> values(cold.generate(request(p)))));
    }
  }

  private static void send(
      List<Integer> prompt, List<ResultCollector> results, List<GenerationHandle> handles) {
    results.add(new ResultCollector());
    handles.add(warm.submit(request(prompt), results.getLast()));
  }

  private static GenerationRequest request(List<Integer> prompt) {
    return GenerationRequest.builder(new RawPrompt.Tokens(prompt))
        .sampling(SamplingOptions.GREEDY)
        .maxTokens(6)
        .topLogprobs(5)
        .build();
  }

  private static List<Integer> tokens(Random random, int count) {
    return random.ints(count, 256, 900).boxed().toList();
  }

  private static List<List<Object>> values(GenerationResult result) {
    List<List<Object>> values = new ArrayList<>();
    for (TokenLogprob token : result.logprobs()) {
      List<Object> value = new ArrayList<>(List.of(token.id(), token.logprob()));
      token.top().forEach(top -> value.addAll(List.of(top.id(), top.logprob())));
      values.add(value);
    }
    return values;
  }
}
