package dev.lily.engine.bench;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.SpeculationOptions;
import dev.lily.engine.sampling.SamplingOptions;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Measures decoding with and without speculation: of an answer that its prompt has word for word
 * ({@code copy}), of one that its prompt has with other words here and there ({@code rewrite}), and
 * of one without repeats ({@code new}).
 *
 * <p>Contract: in process, one request at a time, greedy, without thinking, prefix cache off. Plain
 * and speculating engine take turns; the first round of a task warms the virtual machine up and
 * does not count. Tokens per second are those behind the first token, as medians of the rounds. An
 * answer that differs ends the run.
 */
public final class SpeculationBench {
  private static final int CONTEXT = 2048;
  private static final int MAX_TOKENS = 200;
  private static final String STORY = "Tell me a story about a fox named Mia.";

  /**
   * @param again whether the question was asked before and the answer stands in the prompt
   */
  private record Task(String name, String question, boolean again) {}

  private static final List<Task> TASKS =
      List.of(
          new Task("copy", "Count from 1 to 50.", true),
          new Task("rewrite", STORY, true),
          new Task("new", STORY, false));

  private SpeculationBench() {}

  /**
   * Runs the benchmark.
   *
   * @param arguments model directory, counted rounds, most draft tokens
   */
  public static void main(String[] arguments) {
    if (arguments.length != 3) {
      System.err.println("Usage: SpeculationBench MODEL ROUNDS DRAFT_TOKENS");
      System.exit(2);
      return;
    }
    int rounds = Integer.parseInt(arguments[1]);
    SpeculationOptions on =
        new SpeculationOptions(
            SpeculationOptions.Mode.PROMPT_LOOKUP, Integer.parseInt(arguments[2]));
    try (LilyEngine plain = open(arguments[0], SpeculationOptions.OFF);
        LilyEngine drafting = open(arguments[0], on)) {
      System.out.printf(
          "%-8s %8s %12s %12s %8s %10s %10s%n",
          "task", "tokens", "plain t/s", "drafted t/s", "ratio", "drafted", "accepted");
      for (Task task : TASKS) {
        run(task, plain, drafting, rounds);
      }
    }
  }

  private static LilyEngine open(String model, SpeculationOptions speculation) {
    return LilyEngine.open(
        EngineOptions.builder(Path.of(model))
            .contextLength(CONTEXT)
            .maxSessions(1)
            .cacheBytes(0L)
            .speculation(speculation)
            .build());
  }

  private static void run(Task task, LilyEngine plain, LilyEngine drafting, int rounds) {
    List<Message> messages = messages(task, plain);
    double[] without = new double[rounds];
    double[] with = new double[rounds];
    int tokens = 0;
    EngineStats before = drafting.stats();
    for (int round = -1; round < rounds; round++) {
      GenerationResult expected = answer(messages, plain);
      GenerationResult actual = answer(messages, drafting);
      if (!expected.text().equals(actual.text()) || !expected.usage().equals(actual.usage())) {
        throw new IllegalStateException(
            "The answers differ:%n%s%n%s".formatted(expected.text(), actual.text()));
      }
      if (round < 0) {
        before = drafting.stats();
        continue;
      }
      without[round] = tokensPerSecond(expected);
      with[round] = tokensPerSecond(actual);
      tokens = actual.usage().completionTokens();
    }
    EngineStats.Speculation now = drafting.stats().speculation();
    double median = median(without);
    System.out.printf(
        Locale.ROOT,
        "%-8s %8d %12.1f %12.1f %7.2fx %10d %10d%n",
        task.name(),
        tokens,
        median,
        median(with),
        median(with) / median,
        (now.drafted() - before.speculation().drafted()) / rounds,
        (now.accepted() - before.speculation().accepted()) / rounds);
  }

  private static List<Message> messages(Task task, LilyEngine engine) {
    Message question = new Message.User(task.question());
    return task.again()
        ? List.of(
            question, new Message.Assistant(answer(List.of(question), engine).text()), question)
        : List.of(question);
  }

  private static GenerationResult answer(List<Message> messages, LilyEngine engine) {
    return engine.generate(
        GenerationRequest.builder(new Conversation(messages, List.of()))
            .thinking(false)
            .sampling(SamplingOptions.GREEDY)
            .maxTokens(MAX_TOKENS)
            .build());
  }

  private static double tokensPerSecond(GenerationResult result) {
    return (result.usage().completionTokens() - 1) / (result.timings().decode().toNanos() * 1e-9);
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
