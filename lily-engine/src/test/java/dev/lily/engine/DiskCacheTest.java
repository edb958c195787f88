package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.generation.TokenLogprob;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The disk tier under the test model: answers of an engine that found its states in files. */
class DiskCacheTest {
  @TempDir Path directory;

  private static EngineOptions.Builder options() {
    return EngineOptions.builder(
            Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir"))))
        .contextLength(1024)
        .maxSessions(2)
        .prefillChunk(64);
  }

  private LilyEngine open() {
    return LilyEngine.open(options().cacheDirectory(directory).build());
  }

  private static List<Integer> tokens(int seed, int count) {
    return new Random(seed).ints(count, 256, 900).boxed().toList();
  }

  private static GenerationResult answer(LilyEngine engine, List<Integer> prompt) {
    return engine.generate(
        GenerationRequest.builder(new RawPrompt.Tokens(prompt))
            .sampling(SamplingOptions.GREEDY)
            .maxTokens(8)
            .topLogprobs(5)
            .build());
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

  @Test
  void aPromptIsContinuedAfterARestartAsIfTheEngineHadNeverStopped() {
    List<Integer> prompt = tokens(1, 300);
    List<List<Object>> expected;
    try (LilyEngine engine = open()) {
      GenerationResult first = answer(engine, prompt);
      assertThat(first.usage().cachedTokens()).isZero();
      expected = values(first);
    }
    try (LilyEngine engine = open()) {
      assertThat(engine.stats().disk().entries()).isPositive();
      GenerationResult again = answer(engine, prompt);
      assertThat(again.usage().cachedTokens()).isEqualTo(299);
      assertThat(values(again)).isEqualTo(expected);
      assertThat(engine.stats().disk().hits()).isEqualTo(1);
      assertThat(engine.stats().disk().problem()).isEmpty();
    }
  }

  /** Edits, forks and restarts, with room for few snapshots in memory and a few more on disk. */
  @Test
  void answersAreThoseOfAnEngineWithoutACacheThroughEditsEvictionsAndRestarts() {
    Random random = new Random(5);
    List<List<Integer>> prompts = new ArrayList<>(List.of(tokens(1, 120)));
    long hits = 0;
    try (LilyEngine cold = LilyEngine.open(options().cacheBytes(0L).build())) {
      for (int restart = 0; restart < 3; restart++) {
        EngineOptions options =
            options()
                .cacheBytes(5L << 20)
                .snapshotInterval(32)
                .cacheDirectory(directory)
                .cacheDiskBytes(16L << 20)
                .build();
        try (LilyEngine engine = LilyEngine.open(options)) {
          for (int i = 0; i < 6; i++) {
            List<Integer> base = prompts.get(random.nextInt(prompts.size()));
            List<Integer> prompt = new ArrayList<>(base.subList(0, 32 + random.nextInt(90)));
            prompt.addAll(tokens(100 + random.nextInt(4), 120 - prompt.size() % 30));
            prompt.subList(120, prompt.size()).clear();
            prompts.add(prompt);
            assertThat(values(answer(engine, prompt))).isEqualTo(values(answer(cold, prompt)));
            assertThat(engine.stats().disk().bytes()).isLessThanOrEqualTo(16L << 20);
          }
          hits += engine.stats().disk().hits();
          assertThat(engine.stats().disk().failures()).isZero();
        }
      }
    }
    assertThat(hits).isPositive();
  }

  @Test
  void aDirectoryIsOfNoUseWhileTheCacheIsOff() {
    try (LilyEngine engine =
        LilyEngine.open(options().cacheBytes(0L).cacheDirectory(directory).build())) {
      assertThat(engine.stats().disk().problem()).contains("the prefix cache is off");
      assertThat(directory).isEmptyDirectory();
    }
  }

  @Test
  void theBuffersArePartOfTheMemoryPlan() {
    try (LilyEngine with = open();
        LilyEngine without = LilyEngine.open(options().build())) {
      assertThat(with.memoryPlan().scratchBytes() - without.memoryPlan().scratchBytes())
          .isEqualTo(32L << 20);
    }
  }
}
