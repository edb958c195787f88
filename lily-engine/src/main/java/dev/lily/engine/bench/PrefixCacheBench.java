package dev.lily.engine.bench;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * Measures the time to the first token of a prompt that is new, and of the same prompt with 16 more
 * tokens, of which all but the new ones are in the prefix cache.
 *
 * <p>Contract: in process, one request at a time, greedy, one token each; random ids of bytes,
 * another prompt in each round. The first round warms the virtual machine up and does not count.
 */
public final class PrefixCacheBench {
  private static final int MORE_TOKENS = 16;

  /** Those of single bytes, which every vocabulary has. */
  private static final int IDS = 256;

  /** A model of random weights says what its vocabulary may lack. */
  private static final SamplingOptions ALWAYS_ID_0 =
      SamplingOptions.builder().temperature(0.0).logitBias(Map.of(0, 100.0)).build();

  private PrefixCacheBench() {}

  /**
   * Runs the benchmark.
   *
   * @param arguments model directory, prompt tokens, counted rounds
   */
  public static void main(String[] arguments) {
    if (arguments.length != 3) {
      System.err.println("Usage: PrefixCacheBench MODEL PROMPT_TOKENS ROUNDS");
      System.exit(2);
      return;
    }
    int tokens = Integer.parseInt(arguments[1]);
    int rounds = Integer.parseInt(arguments[2]);
    EngineOptions options =
        EngineOptions.builder(Path.of(arguments[0]))
            .contextLength(tokens + 2 * MORE_TOKENS)
            .maxSessions(1)
            .build();
    try (LilyEngine engine = LilyEngine.open(options)) {
      System.out.printf("%8s %12s %12s %8s%n", "tokens", "new", "continued", "ratio");
      Random random = new Random(35);
      for (int round = 0; round <= rounds; round++) {
        List<Integer> prompt = prompt(random, tokens);
        double cold = secondsToFirstToken(engine, prompt, 0);
        List<Integer> longer = new ArrayList<>(prompt);
        longer.addAll(prompt.subList(0, MORE_TOKENS));
        double warm = secondsToFirstToken(engine, longer, tokens - 1);
        if (round > 0) {
          System.out.printf(
              Locale.ROOT, "%8d %10.3f s %10.3f s %7.0fx%n", tokens, cold, warm, cold / warm);
        }
      }
    }
  }

  private static List<Integer> prompt(Random random, int tokens) {
    return IntStream.range(0, tokens).map(i -> random.nextInt(IDS)).boxed().toList();
  }

  private static double secondsToFirstToken(LilyEngine engine, List<Integer> prompt, int cached) {
    GenerationResult result =
        engine.generate(
            GenerationRequest.builder(new RawPrompt.Tokens(prompt))
                .sampling(ALWAYS_ID_0)
                .maxTokens(1)
                .build());
    if (result.usage().cachedTokens() < cached) {
      throw new IllegalStateException(
          "Only %d of %d tokens were cached"
              .formatted(result.usage().cachedTokens(), prompt.size()));
    }
    return result.timings().firstToken().toNanos() * 1e-9;
  }
}
