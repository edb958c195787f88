package dev.lily.engine.bench;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.RawPrompt;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Measures streams that run side by side: their tokens a second together, the gaps between the
 * tokens of one stream, and what a long prompt that is read meanwhile does to both sides.
 *
 * <p>Contract: in process, through the engine as applications use it; every prompt is new and of
 * random ids of bytes, every answer of sampled ones. Rates and gaps count from when all streams
 * write until each has written so many tokens more, or while the long prompt is read. A round of
 * streams and a prompt before them warm the virtual machine up and do not count.
 */
public final class BatchBench {
  private static final int[] STREAMS = {1, 2, 4, 8};
  private static final int[] COMPANY = {1, 4};
  private static final int MAX_STREAMS = 8;
  private static final int SHORT_PROMPT = 128;

  /** Those of single bytes, which every vocabulary has. */
  private static final int IDS = 256;

  /** A model of random weights says what its vocabulary may lack. */
  private static final Map<Integer, Double> ONLY_BYTES =
      IntStream.range(0, IDS).boxed().collect(Collectors.toMap(Function.identity(), _ -> 100.0));

  private final LilyEngine engine;
  private final int maxAnswer;
  private final Random random = new Random(35);

  private BatchBench(LilyEngine engine, int maxAnswer) {
    this.engine = engine;
    this.maxAnswer = maxAnswer;
  }

  /**
   * Runs the benchmark.
   *
   * @param arguments model directory, tokens of each stream, tokens of the long prompt, and, if not
   *     the default, {@code lily.max-step-time} in milliseconds
   */
  public static void main(String[] arguments) throws InterruptedException {
    if (arguments.length < 3 || arguments.length > 4) {
      System.err.println("Usage: BatchBench MODEL TOKENS LONG_PROMPT [MAX_STEP_MILLIS]");
      System.exit(2);
      return;
    }
    int tokens = Integer.parseInt(arguments[1]);
    int longPrompt = Integer.parseInt(arguments[2]);
    int maxAnswer = Math.max(8 * tokens, 2 * longPrompt);
    EngineOptions.Builder options =
        EngineOptions.builder(Path.of(arguments[0]))
            .contextLength(SHORT_PROMPT + maxAnswer)
            .maxSessions(MAX_STREAMS);
    if (arguments.length == 4) {
      options.maxStepTime(Duration.ofMillis(Long.parseLong(arguments[3])));
    }
    EngineOptions built = options.build();
    try (LilyEngine engine = LilyEngine.open(built)) {
      BatchBench bench = new BatchBench(engine, maxAnswer);
      List<String> results = new ArrayList<>(bench.streams(tokens));
      results.addAll(bench.company(longPrompt, built.maxStepTime()));
      results.forEach(System.out::println);
    }
  }

  /** So many streams at once, for each number of them. */
  private List<String> streams(int tokens) throws InterruptedException {
    run(MAX_STREAMS, Math.min(16, tokens));
    run(1, tokens);
    System.out.printf(
        "%8s %14s %9s %9s %9s%n", "streams", "tokens/s", "p50 ms", "p99 ms", "max ms");
    List<String> results = new ArrayList<>();
    for (int streams : STREAMS) {
      Gaps gaps = run(streams, tokens);
      System.out.printf(
          Locale.ROOT,
          "%8d %14.1f %9.1f %9.1f %9.1f%n",
          streams,
          gaps.tokensPerSecond(),
          gaps.percentile(50),
          gaps.percentile(99),
          gaps.percentile(100));
      results.add(
          String.format(
              Locale.ROOT,
              "BATCH streams=%d tokens_per_s=%.1f p50=%.1f p99=%.1f max=%.1f",
              streams,
              gaps.tokensPerSecond(),
              gaps.percentile(50),
              gaps.percentile(99),
              gaps.percentile(100)));
    }
    return results;
  }

  private Gaps run(int streams, int tokens) throws InterruptedException {
    Company company = new Company(streams);
    long from = System.nanoTime();
    for (TokenTimes stream : company.times) {
      stream.awaitTokens(stream.times().length + tokens);
    }
    long to = System.nanoTime();
    company.end();
    return Gaps.between(company.times, from, to);
  }

  /** A long prompt that is read alone, and beside streams. */
  private List<String> company(int prompt, Duration bound) throws InterruptedException {
    firstTokenSeconds(Math.min(1024, prompt));
    double alone = firstTokenSeconds(prompt);
    System.out.printf(
        "%n%8s %9s %9s %9s %9s %16s %16s%n",
        "streams", "bound ms", "p50 ms", "p99 ms", "max ms", "first token s", "read alone s");
    List<String> results = new ArrayList<>();
    for (int streams : COMPANY) {
      Company company = new Company(streams);
      long from = System.nanoTime();
      double beside = firstTokenSeconds(prompt);
      Gaps gaps = Gaps.between(company.times, from, System.nanoTime());
      company.end();
      System.out.printf(
          Locale.ROOT,
          "%8d %9d %9.1f %9.1f %9.1f %16.2f %16.2f%n",
          streams,
          bound.toMillis(),
          gaps.percentile(50),
          gaps.percentile(99),
          gaps.percentile(100),
          beside,
          alone);
      results.add(
          String.format(
              Locale.ROOT,
              "PREFILL streams=%d prompt=%d bound=%d max_gap=%.1f p50=%.1f p99=%.1f first_token_s=%.2f alone_s=%.2f",
              streams,
              prompt,
              bound.toMillis(),
              gaps.percentile(100),
              gaps.percentile(50),
              gaps.percentile(99),
              beside,
              alone));
    }
    return results;
  }

  /** Streams that write until {@link #end}. */
  private final class Company {
    final List<TokenTimes> times = new ArrayList<>();
    private final List<GenerationHandle> handles = new ArrayList<>();

    /** Returns when all of them write. */
    Company(int streams) throws InterruptedException {
      for (int i = 0; i < streams; i++) {
        times.add(new TokenTimes());
        handles.add(submit(SHORT_PROMPT, maxAnswer, times.getLast()));
      }
      for (TokenTimes stream : times) {
        stream.awaitTokens(2);
      }
    }

    /**
     * Ends the streams.
     *
     * @throws IllegalStateException if one had ended before
     */
    void end() throws InterruptedException {
      handles.forEach(GenerationHandle::cancel);
      for (int i = 0; i < handles.size(); i++) {
        handles.get(i).await();
        times.get(i).requireEnd(FinishReason.CANCELLED);
      }
    }
  }

  private double firstTokenSeconds(int prompt) throws InterruptedException {
    TokenTimes times = new TokenTimes();
    submit(prompt, 1, times).await();
    return times.requireEnd(FinishReason.LENGTH).firstToken().toNanos() * 1e-9;
  }

  private GenerationHandle submit(int promptTokens, int maxTokens, TokenTimes times) {
    List<Integer> prompt =
        IntStream.range(0, promptTokens).map(_ -> random.nextInt(IDS)).boxed().toList();
    return engine.submit(
        GenerationRequest.builder(new RawPrompt.Tokens(prompt))
            .sampling(
                SamplingOptions.builder()
                    .temperature(1.0)
                    .topK(20)
                    .topP(1.0)
                    .seed(random.nextLong())
                    .logitBias(ONLY_BYTES)
                    .build())
            .topLogprobs(0) // so that every token is an event
            .maxTokens(maxTokens)
            .build(),
        times);
  }
}
