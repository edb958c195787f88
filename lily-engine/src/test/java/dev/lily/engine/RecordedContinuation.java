package dev.lily.engine;

import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * A prompt with its greedy continuation as another engine computed it, and a comparison with what a
 * loaded model computes. For tests of every back end.
 *
 * @param prompt token ids
 * @param steps one for each token of the continuation
 */
public record RecordedContinuation(List<Integer> prompt, List<Step> steps) {
  /**
   * Where the recorded likeliest token leads the next one by less (natural logarithm), rounding may
   * swap the two.
   */
  static final double BINDING_MARGIN = 0.5;

  /** Tokens less likely than this are not compared: their logits are rounded too coarsely. */
  private static final double LEAST_COMPARED = -6;

  private static final int TOP = 16;
  private static final SamplingParameters GREEDY =
      SamplingParameters.of(SamplingOptions.GREEDY, 0, TOP);

  public RecordedContinuation {
    prompt = List.copyOf(prompt);
    steps = List.copyOf(steps);
  }

  /**
   * A token, and the likeliest ones at its place.
   *
   * @param logprobs natural logarithms, of the tokens in {@code top}
   */
  public record Step(int chosen, List<Integer> top, List<Double> logprobs) {
    double margin() {
      return logprobs.get(0) - logprobs.get(1);
    }
  }

  /**
   * What came of a comparison.
   *
   * @param wrong places where the recorded choice binds and the model chooses another token
   * @param binding places where the recorded choice binds
   * @param medianDifference of the log-probabilities of all likely tokens, each with the recorded
   *     text before it
   * @param largestDifference likewise
   * @param decoded tokens that the model gives by itself until the first that differs
   * @param decodingEndsRightly whether the first that differs is one where rounding may decide
   */
  public record Comparison(
      List<String> wrong,
      int binding,
      double medianDifference,
      double largestDifference,
      int decoded,
      boolean decodingEndsRightly) {
    @Override
    public String toString() {
      return String.format(
          Locale.ROOT,
          "%d of %d binding choices differ, log-probabilities by %.3f (median) and %.3f (most), %d tokens decoded alike",
          wrong.size(),
          binding,
          medianDifference,
          largestDifference,
          decoded);
    }
  }

  /** Reads a resource of this module's tests, such as {@code /goldens/golden_35b_raw.json}. */
  public static RecordedContinuation read(String resource) {
    try (InputStream in = RecordedContinuation.class.getResourceAsStream(resource)) {
      JsonNode json = JsonMapper.shared().readTree(Objects.requireNonNull(in, resource));
      List<Integer> prompt = new ArrayList<>();
      json.path("prompt_token_ids").forEach(id -> prompt.add(id.asInt()));
      List<Step> steps = new ArrayList<>();
      for (JsonNode step : json.path("steps")) {
        List<Integer> top = new ArrayList<>();
        List<Double> logprobs = new ArrayList<>();
        for (JsonNode entry : step.path("topk")) {
          top.add(entry.path(0).asInt());
          logprobs.add(entry.path(1).asDouble());
        }
        steps.add(new Step(step.path("chosen").asInt(), top, logprobs));
      }
      return new RecordedContinuation(prompt, steps);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Tokens of prompt and continuation together: the context that a comparison needs. */
  public int contextLength() {
    return prompt.size() + steps.size();
  }

  /** Records what a model itself gives. */
  static RecordedContinuation record(LanguageModel model, List<Integer> prompt, int count) {
    List<Step> steps = new ArrayList<>();
    try (Run run = new Run(model, prompt.size() + count)) {
      run.prefill(prompt);
      for (int i = 0; i < count; i++) {
        steps.add(run.step());
        run.next(RowPlan.PREVIOUS_TOKEN);
      }
    }
    return new RecordedContinuation(prompt, steps);
  }

  /** Runs the prompt, then the continuation once with the recorded tokens and once by itself. */
  public Comparison compare(LanguageModel model) {
    List<String> wrong = new ArrayList<>();
    List<Double> differences = new ArrayList<>();
    int binding = 0;
    try (Run run = new Run(model, contextLength())) {
      run.prefill(prompt);
      for (int i = 0; i < steps.size(); i++) {
        Step expected = steps.get(i);
        Step actual = run.step();
        binding += expected.margin() >= BINDING_MARGIN ? 1 : 0;
        if (actual.chosen != expected.chosen && expected.margin() >= BINDING_MARGIN) {
          wrong.add("step %d chose %d, not %d".formatted(i, actual.chosen, expected.chosen));
        }
        addDifferences(expected, actual, differences);
        run.next(expected.chosen);
      }
    }
    double[] sorted = differences.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    int decoded = decode(model);
    return new Comparison(
        wrong,
        binding,
        sorted.length == 0 ? Double.NaN : sorted[sorted.length / 2],
        sorted.length == 0 ? Double.NaN : sorted[sorted.length - 1],
        decoded,
        decoded == steps.size() || steps.get(decoded).margin() < BINDING_MARGIN);
  }

  private static void addDifferences(Step expected, Step actual, List<Double> differences) {
    for (int k = 0; k < expected.top.size(); k++) {
      int at = actual.top.indexOf(expected.top.get(k));
      if (at >= 0 && expected.logprobs.get(k) >= LEAST_COMPARED) {
        differences.add(Math.abs(actual.logprobs.get(at) - expected.logprobs.get(k)));
      }
    }
  }

  private int decode(LanguageModel model) {
    try (Run run = new Run(model, contextLength())) {
      run.prefill(prompt);
      int alike = 0;
      while (alike < steps.size() && run.step().chosen == steps.get(alike).chosen) {
        alike++;
        run.next(RowPlan.PREVIOUS_TOKEN);
      }
      return alike;
    }
  }

  /** One sequence, a token at a time after the prompt. */
  private static final class Run implements AutoCloseable {
    private final LanguageModel model;
    private final int maxTokens;
    private final RowPlan plan;
    private final SequenceState state;
    private Step step = new Step(0, List.of(), List.of());

    Run(LanguageModel model, int maxTokens) {
      this.model = model;
      this.maxTokens = maxTokens;
      plan = new RowPlan(model.limits());
      state = Objects.requireNonNull(model.states().open(maxTokens), "no room for a sequence");
      model.states().device().beginSampling(state.samplingSlot(), GREEDY, new int[0]);
    }

    void prefill(List<Integer> tokens) {
      int chunk = model.limits().maxRows();
      for (int from = 0; from < tokens.size(); from += chunk) {
        int end = Math.min(from + chunk, tokens.size());
        int[] part = tokens.subList(from, end).stream().mapToInt(Integer::intValue).toArray();
        forward(part, end == tokens.size());
      }
    }

    /** Goes on with a token, or with the one that was chosen. */
    void next(int token) {
      if (state.position() < maxTokens) {
        forward(new int[] {token}, true);
      }
    }

    Step step() {
      return step;
    }

    private void forward(int[] tokens, boolean isSampled) {
      state.reserve(tokens.length);
      plan.clear();
      plan.add(
          tokens,
          0,
          tokens.length,
          state.position(),
          state.pages(),
          state.recurrentSlot(),
          isSampled ? 1 : 0,
          isSampled ? state.samplingSlot() : RowPlan.NO_SAMPLING);
      state.advance(tokens.length);
      PendingPass pass = model.forward(plan);
      pass.await();
      if (isSampled) {
        step = read(pass);
      }
    }

    private static Step read(PendingPass pass) {
      Integer[] top = new Integer[pass.numTopLogprobs(0)];
      Double[] logprobs = new Double[top.length];
      for (int k = 0; k < top.length; k++) {
        top[k] = pass.topToken(0, k);
        logprobs[k] = (double) pass.topLogprob(0, k);
      }
      return new Step(pass.token(0), Arrays.asList(top), Arrays.asList(logprobs));
    }

    @Override
    public void close() {
      state.close();
    }
  }
}
