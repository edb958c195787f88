package dev.lily.engine.bench;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LoadedModel;
import dev.lily.engine.ModelLoader;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Objects;
import java.util.stream.Collectors;

/** Prints a greedy continuation of given token ids, to compare engines on one model. */
public final class GreedyTokens {
  private static final SamplingParameters GREEDY =
      SamplingParameters.of(SamplingOptions.GREEDY, 0, -1);

  private GreedyTokens() {}

  /** Arguments: model directory, token ids such as {@code 5,9,100}, number of tokens. */
  public static void main(String[] arguments) {
    if (arguments.length != 3) {
      System.err.println("Usage: GreedyTokens DIRECTORY 5,9,100 COUNT");
      System.exit(2);
    }
    int[] prompt = Arrays.stream(arguments[1].split(",")).mapToInt(Integer::parseInt).toArray();
    int[] tokens = continuation(Path.of(arguments[0]), prompt, Integer.parseInt(arguments[2]));
    System.out.println(
        Arrays.stream(tokens).mapToObj(String::valueOf).collect(Collectors.joining(" ")));
  }

  static int[] continuation(Path directory, int[] prompt, int count) {
    EngineOptions options =
        EngineOptions.builder(directory)
            .contextLength(prompt.length + count)
            .maxSessions(1)
            .prefillChunk(prompt.length)
            .build();
    int[] tokens = new int[count];
    try (LoadedModel loaded = ModelLoader.load(options)) {
      LanguageModel model = loaded.model();
      RowPlan plan = new RowPlan(model.limits());
      try (SequenceState state =
          Objects.requireNonNull(model.states().open(prompt.length + count))) {
        model.states().device().beginSampling(state.samplingSlot(), GREEDY, prompt);
        int[] input = prompt;
        for (int i = 0; i < count; i++) {
          state.reserve(input.length);
          plan.clear();
          plan.add(
              input,
              0,
              input.length,
              state.position(),
              state.pages(),
              state.recurrentSlot(),
              1,
              state.samplingSlot());
          state.advance(input.length);
          PendingPass pass = model.forward(plan);
          pass.await();
          tokens[i] = pass.token(0);
          input = new int[] {tokens[i]};
        }
      }
    }
    return tokens;
  }
}
