package dev.lily.metal;

import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.metal.kernel.DevicePlan;

/**
 * Which rows of a plan are sampled from, a round for each row of a sequence: a slot's rows go one
 * after the other, because each sees the tokens chosen before. Reused.
 */
final class SampledRows {
  private final SamplingSlots slots;
  private final int[] firstLogit;
  private int first;
  private int count;
  private boolean reportsLogprobs;

  SampledRows(SamplingSlots slots, PassLimits limits) {
    this.slots = slots;
    firstLogit = new int[limits.maxSequences() + 1];
  }

  /** Takes up a plan. */
  void begin(RowPlan rows) {
    int index = 0;
    for (int s = 0; s < rows.numSequences(); s++) {
      firstLogit[s] = index;
      while (index < rows.numLogitRows() && rows.sequenceOf(rows.logitRow(index)) == s) {
        index++;
      }
    }
    firstLogit[rows.numSequences()] = index;
  }

  /** Counts the rows of a round; false if there are none. */
  boolean round(RowPlan rows, int round) {
    count = 0;
    reportsLogprobs = false;
    for (int s = 0; s < rows.numSequences(); s++) {
      if (isSampled(rows, s, round)) {
        count++;
        reportsLogprobs |= slots.topLogprobs(rows.samplingSlot(s)) >= 0;
      }
    }
    return count > 0;
  }

  private boolean isSampled(RowPlan rows, int sequence, int round) {
    return rows.samplingSlot(sequence) != RowPlan.NO_SAMPLING
        && firstLogit[sequence] + round < firstLogit[sequence + 1];
  }

  /** Enters the rows of the round in the plan, and where their results will be in the pass. */
  void enter(RowPlan rows, int round, DevicePlan plan, MetalPendingPass pending) {
    first = -1;
    for (int s = 0; s < rows.numSequences(); s++) {
      if (isSampled(rows, s, round)) {
        int index = firstLogit[s] + round;
        int slot = rows.samplingSlot(s);
        int result = plan.addSampledRow(plan.deviceLogit(index), slot);
        pending.sampled(index, result, slots.topLogprobs(slot) >= 0);
        first = first < 0 ? result : first;
      }
    }
  }

  /** Number of the round's first row, once entered. */
  int first() {
    return first;
  }

  /** Rows of the round. */
  int count() {
    return count;
  }

  /** Whether any of them reports log-probabilities. */
  boolean reportsLogprobs() {
    return reportsLogprobs;
  }
}
