package dev.lily.engine.bench;

import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.util.ArrayDeque;
import java.util.Objects;

/** Runs one sequence through a model and times it. */
final class BenchRun {
  private static final SamplingParameters GREEDY =
      SamplingParameters.of(SamplingOptions.GREEDY, 0, -1);

  private final LanguageModel model;
  private final int decodeSteps;
  private final RowPlan plan;
  private final int chunk;
  private final int[] previous = {RowPlan.PREVIOUS_TOKEN};

  BenchRun(LanguageModel model, int decodeSteps) {
    this.model = model;
    this.decodeSteps = decodeSteps;
    plan = new RowPlan(model.limits());
    chunk = model.limits().maxRows() - model.limits().maxSequences();
  }

  /** Prompt token {@code i} of the contract. */
  static int promptToken(int i, int vocabulary) {
    return (int) ((i * 2654435761L & 0xffff_ffffL) % vocabulary);
  }

  LilyBench.Row measure(int context) {
    int[] prompt = new int[context];
    for (int i = 0; i < context; i++) {
      prompt[i] = promptToken(i, model.layout().vocabularySize());
    }
    int[] tokens = new int[decodeSteps + 1];
    try (SequenceState state =
        Objects.requireNonNull(model.states().open(context + decodeSteps + 1))) {
      model.states().device().beginSampling(state.samplingSlot(), GREEDY, prompt);
      long start = System.nanoTime();
      tokens[0] = prefill(state, prompt);
      long prefilled = System.nanoTime();
      decode(state, tokens);
      long decoded = System.nanoTime();
      return new LilyBench.Row(
          context,
          context / ((prefilled - start) / 1e9),
          decodeSteps / ((decoded - prefilled) / 1e9),
          fnv1a(tokens));
    }
  }

  private int prefill(SequenceState state, int[] prompt) {
    PendingPass pass = null;
    for (int from = 0; from < prompt.length; from += chunk) {
      int count = Math.min(chunk, prompt.length - from);
      boolean last = from + count == prompt.length;
      submitRows(state, prompt, from, count, last);
      pass = model.forward(plan);
      pass.await();
    }
    return Objects.requireNonNull(pass).token(0);
  }

  private void decode(SequenceState state, int[] tokens) {
    ArrayDeque<PendingPass> inFlight = new ArrayDeque<>();
    int read = 1;
    for (int step = 0; step < decodeSteps; step++) {
      submitRows(state, previous, 0, 1, true);
      inFlight.add(model.forward(plan));
      if (inFlight.size() == model.maxPassesInFlight()) {
        read = readOldest(inFlight, tokens, read);
      }
    }
    while (!inFlight.isEmpty()) {
      read = readOldest(inFlight, tokens, read);
    }
  }

  private static int readOldest(ArrayDeque<PendingPass> inFlight, int[] tokens, int read) {
    PendingPass pass = inFlight.remove();
    pass.await();
    tokens[read] = pass.token(0);
    return read + 1;
  }

  private void submitRows(SequenceState state, int[] tokens, int from, int count, boolean sample) {
    state.reserve(count);
    plan.clear();
    plan.add(
        tokens,
        from,
        count,
        state.position(),
        state.pages(),
        state.recurrentSlot(),
        sample ? 1 : 0,
        sample ? state.samplingSlot() : RowPlan.NO_SAMPLING);
    state.advance(count);
  }

  /** FNV-1a over the tokens as little-endian 32-bit values. */
  static long fnv1a(int[] tokens) {
    long hash = 0xcbf29ce484222325L;
    for (int token : tokens) {
      for (int shift = 0; shift < 32; shift += 8) {
        hash = (hash ^ (token >>> shift & 0xff)) * 0x100000001b3L;
      }
    }
    return hash;
  }
}
