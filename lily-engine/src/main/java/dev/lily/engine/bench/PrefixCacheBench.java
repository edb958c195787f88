package dev.lily.engine.bench;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.sampling.SamplingOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * Measures the time to the first token of a prompt that is new, and of the same prompt with 16 more
 * tokens, of which all but the new ones are in the prefix cache: in memory, or on disk after a
 * restart of the engine.
 *
 * <p>Contract: in process, one request at a time, greedy, one token each; random ids of bytes,
 * another prompt in each round. The first round warms the virtual machine up and does not count; a
 * new engine over files first reads another prompt, which warms the mapped weights up.
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
   * @param arguments model directory, prompt tokens, counted rounds, and for what is on disk an
   *     empty directory
   */
  public static void main(String[] arguments) throws IOException {
    if (arguments.length != 3 && arguments.length != 4) {
      System.err.println("Usage: PrefixCacheBench MODEL PROMPT_TOKENS ROUNDS [DIRECTORY]");
      System.exit(2);
      return;
    }
    int tokens = Integer.parseInt(arguments[1]);
    int rounds = Integer.parseInt(arguments[2]);
    EngineOptions.Builder options =
        EngineOptions.builder(Path.of(arguments[0]))
            .contextLength(tokens + 2 * MORE_TOKENS)
            .maxSessions(1);
    if (arguments.length == 3) {
      inMemory(options.build(), tokens, rounds);
    } else {
      Path directory = Files.createDirectories(Path.of(arguments[3]));
      onDisk(options.cacheDirectory(directory).build(), tokens, rounds);
    }
  }

  private static void inMemory(EngineOptions options, int tokens, int rounds) {
    try (LilyEngine engine = LilyEngine.open(options)) {
      header("continued");
      Random random = new Random(35);
      for (int round = 0; round <= rounds; round++) {
        List<Integer> prompt = prompt(random, tokens);
        double cold = secondsToFirstToken(engine, prompt, 0);
        double warm = secondsToFirstToken(engine, longer(prompt), tokens - 1);
        report(round, tokens, cold, warm);
      }
    }
  }

  private static void onDisk(EngineOptions options, int tokens, int rounds) {
    header("restarted");
    Random random = new Random();
    for (int round = 0; round <= rounds; round++) {
      List<Integer> prompt = prompt(random, tokens);
      double cold;
      try (LilyEngine engine = LilyEngine.open(options)) {
        secondsToFirstToken(engine, prompt(random, MORE_TOKENS), 0);
        cold = secondsToFirstToken(engine, prompt, 0);
      }
      try (LilyEngine engine = LilyEngine.open(options)) {
        secondsToFirstToken(engine, prompt(random, MORE_TOKENS), 0);
        double warm = secondsToFirstToken(engine, longer(prompt), tokens - 1);
        if (engine.stats().disk().hits() != 1) {
          throw new IllegalStateException(
              "Nothing was read from disk: " + engine.stats().disk().problem());
        }
        report(round, tokens, cold, warm);
      }
    }
  }

  private static void header(String second) {
    System.out.printf("%8s %12s %12s %8s%n", "tokens", "new", second, "ratio");
  }

  private static void report(int round, int tokens, double cold, double warm) {
    if (round > 0) {
      System.out.printf(
          Locale.ROOT, "%8d %10.3f s %10.3f s %7.0fx%n", tokens, cold, warm, cold / warm);
    }
  }

  private static List<Integer> longer(List<Integer> prompt) {
    List<Integer> longer = new ArrayList<>(prompt);
    longer.addAll(prompt.subList(0, MORE_TOKENS));
    return longer;
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
