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
}
