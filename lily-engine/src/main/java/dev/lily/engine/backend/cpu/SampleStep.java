package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import dev.lily.engine.sampling.Sampler;
import dev.lily.engine.sampling.SamplerState;
import dev.lily.engine.sampling.SamplingException;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Chooses tokens: parts take turns at the sequences, so that a slot is used by one thread only. */
final class SampleStep implements WorkerPool.Task {
  private static final Logger log = LoggerFactory.getLogger(SampleStep.class);

  private final Compute compute;
  private final SamplerState[] slots;
  private final Sampler[] samplers;
  private final int[] firstLogit;
  private final int vocabularySize;
  private @Nullable RowPlan plan;
  private @Nullable CpuPendingPass results;
  private float[] logits = {};
  private int numParts;

  SampleStep(Compute compute, SamplerState[] slots, int vocabularySize, int maxSequences) {
    this.compute = compute;
    this.slots = slots;
    this.vocabularySize = vocabularySize;
    samplers = new Sampler[numSamplers(slots.length, compute.pool().numWorkers())];
    for (int i = 0; i < samplers.length; i++) {
      samplers[i] = new Sampler(vocabularySize);
    }
    firstLogit = new int[maxSequences + 1];
  }

  private static int numSamplers(int slots, int workers) {
    return Math.min(workers, Math.max(1, slots));
  }

  /** Scratch of all threads, in elements of four bytes. */
  static long elements(StateLayout layout, int workers) {
    // Adjusted logits; then ids, logits and 64-bit weights of the candidates.
    return numSamplers(layout.numSamplingSlots(), workers) * 5L * layout.vocabularySize();
  }

  /**
   * @param logits {@code [numLogitRows, vocabularySize]}
   */
  void run(float[] logits, RowPlan plan, CpuPendingPass results) {
    this.logits = logits;
    this.plan = plan;
    this.results = results;
    int index = 0;
    for (int s = 0; s < plan.numSequences(); s++) {
      firstLogit[s] = index;
      while (index < plan.numLogitRows() && plan.sequenceOf(plan.logitRow(index)) == s) {
        index++;
      }
    }
    firstLogit[plan.numSequences()] = index;
    numParts = Math.min(samplers.length, plan.numSequences());
    compute.pool().run(this, numParts);
  }

  @Override
  public void run(int part, int worker) {
    RowPlan plan = Objects.requireNonNull(this.plan);
    for (int s = part; s < plan.numSequences(); s += numParts) {
      int slot = plan.samplingSlot(s);
      for (int i = firstLogit[s]; slot != RowPlan.NO_SAMPLING && i < firstLogit[s + 1]; i++) {
        sample(samplers[part], i, slots[slot]);
      }
    }
  }

  private void sample(Sampler sampler, int index, SamplerState state) {
    try {
      sampler.sample(
          logits, index * vocabularySize, state, Objects.requireNonNull(results).sampled(index));
    } catch (SamplingException e) {
      // One sequence without a token must not fail the others of the pass: it keeps token -1.
      log.warn("No token for logit row {}: {}", index, e.getMessage());
    }
  }
}
