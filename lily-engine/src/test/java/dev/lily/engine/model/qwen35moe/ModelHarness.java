package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendSelector;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.checkpoint.Checkpoint;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** A model driven pass by pass, without scheduler and tokenizer; on any back end. */
public final class ModelHarness implements AutoCloseable {
  public static final SamplingParameters GREEDY =
      SamplingParameters.of(SamplingOptions.GREEDY, 0, -1);
  private static final int PAGE_TOKENS = 32;

  public final Qwen35Config config;
  public final Qwen35Moe model;
  private final Checkpoint checkpoint;
  private final Backend backend;
  private final RowPlan plan;

  private ModelHarness(
      Path directory, Backend backend, KeyValueType keyValueType, PassLimits limits, int slots) {
    this.backend = backend;
    checkpoint = Checkpoint.open(directory);
    config = Qwen35Config.read(checkpoint.config(), directory.resolve("config.json"));
    int pages = limits.maxSequences() * Math.ceilDiv(limits.maxPositions(), PAGE_TOKENS);
    StateLayout layout =
        Qwen35Moe.layout(
                config, PAGE_TOKENS, pages, slots, limits.maxSequences(), config.vocabSize())
            .with(keyValueType);
    model = Qwen35Moe.open(config, checkpoint, backend, layout, limits);
    plan = new RowPlan(limits);
  }

  /** lily-nano on a back end, which is closed with it. */
  public static ModelHarness nano(Backend backend, PassLimits limits) {
    return new ModelHarness(nano(), backend, KeyValueType.BF16, limits, 2 * limits.maxSequences());
  }

  /** A checkpoint on the CPU. */
  static ModelHarness open(
      Path directory, String kernels, KeyValueType keyValueType, int threads, PassLimits limits) {
    Backend backend =
        BackendSelector.select("cpu").provider().open(new BackendOptions(threads, kernels));
    return new ModelHarness(directory, backend, keyValueType, limits, 2 * limits.maxSequences());
  }

  static Path nano() {
    return Path.of(
        Objects.requireNonNull(
            System.getProperty("lily.nano.dir"), "lily.nano.dir is set by the parent pom"));
  }

  /** lily-nano with room for {@code sequences} of 2048 tokens. */
  static ModelHarness nano(String kernels, int threads, int maxRows, int sequences, int logitRows) {
    return nano(kernels, KeyValueType.BF16, threads, maxRows, sequences, logitRows);
  }

  /** The same with keys and values kept as another type. */
  static ModelHarness nano(
      String kernels,
      KeyValueType keyValueType,
      int threads,
      int maxRows,
      int sequences,
      int logitRows) {
    PassLimits limits = new PassLimits(maxRows, sequences, logitRows, 2048);
    return open(nano(), kernels, keyValueType, threads, limits);
  }

  public SequenceState newSequence() {
    return Objects.requireNonNull(model.states().open(model.limits().maxPositions()));
  }

  /** Runs tokens through a sequence in chunks and returns the logits of every one. */
  public float[][] logits(SequenceState state, int[] tokens, int chunk) {
    return logits(state, tokens, chunk, PassObserver.NONE);
  }

  float[][] logits(SequenceState state, int[] tokens, int chunk, PassObserver observer) {
    int vocabulary = config.vocabSize();
    float[][] result = new float[tokens.length][vocabulary];
    for (int from = 0; from < tokens.length; from += chunk) {
      int count = Math.min(chunk, tokens.length - from);
      float[] copied = new float[count * vocabulary];
      plan.clear();
      addRows(state, tokens, from, count, count, RowPlan.NO_SAMPLING);
      forward(
          (pass, what, layer, tensor) -> {
            if (what == PassObserver.Activation.LOGITS) {
              pass.copyOut(tensor, 0, count, copied);
            }
            observer.observe(pass, what, layer, tensor);
          });
      for (int i = 0; i < count; i++) {
        System.arraycopy(copied, i * vocabulary, result[from + i], 0, vocabulary);
      }
    }
    return result;
  }

  /** Continues several prompts greedily, all decode rows in one plan; {@code steps} tokens each. */
  public List<int[]> greedy(List<int[]> prompts, int chunk, int steps) {
    List<SequenceState> states = new ArrayList<>();
    List<int[]> results = new ArrayList<>();
    for (int[] prompt : prompts) {
      SequenceState state = newSequence();
      states.add(state);
      model.states().device().beginSampling(state.samplingSlot(), GREEDY, prompt);
      int[] result = new int[steps];
      results.add(result);
      for (int from = 0; from < prompt.length; from += chunk) {
        int count = Math.min(chunk, prompt.length - from);
        boolean last = from + count == prompt.length;
        plan.clear();
        addRows(
            state,
            prompt,
            from,
            count,
            last ? 1 : 0,
            last ? state.samplingSlot() : RowPlan.NO_SAMPLING);
        PendingPass pass = forward(PassObserver.NONE);
        if (last) {
          result[0] = pass.token(0);
        }
      }
    }
    int[] previous = {RowPlan.PREVIOUS_TOKEN};
    for (int step = 1; step < steps; step++) {
      plan.clear();
      for (SequenceState state : states) {
        addRows(state, previous, 0, 1, 1, state.samplingSlot());
      }
      PendingPass pass = forward(PassObserver.NONE);
      for (int s = 0; s < states.size(); s++) {
        results.get(s)[step] = pass.token(s);
      }
    }
    states.forEach(SequenceState::close);
    return results;
  }

  public RowPlan plan() {
    return plan;
  }

  public void addRows(
      SequenceState state, int[] tokens, int from, int count, int logitRows, int samplingSlot) {
    state.reserve(count);
    plan.add(
        tokens,
        from,
        count,
        state.position(),
        state.pages(),
        state.recurrentSlot(),
        logitRows,
        samplingSlot);
    state.advance(count);
  }

  /** Runs the plan; the logits of its rows that need them, one after the other. */
  public float[] forward() {
    float[] logits = new float[plan.numLogitRows() * config.vocabSize()];
    forward(
        (pass, what, layer, tensor) -> {
          if (what == PassObserver.Activation.LOGITS) {
            pass.copyOut(tensor, 0, plan.numLogitRows(), logits);
          }
        });
    return logits;
  }

  PendingPass forward(PassObserver observer) {
    PendingPass pass = model.forward(plan, observer);
    pass.await();
    return pass;
  }

  @Override
  public void close() {
    model.close();
    backend.close();
    checkpoint.close();
  }
}
