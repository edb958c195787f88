package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Gated DeltaNet: parts are the key heads, with their value heads, of each sequence. */
final class GatedDeltaStep implements WorkerPool.Task {
  private final Compute compute;
  private final DeltaUnit[] units;
  private final @Nullable DeltaTaps[] tapsOfLayer;
  private @Nullable GatedDeltaOperands operands;
  private @Nullable RowPlan plan;
  private @Nullable DeltaTaps taps;

  GatedDeltaStep(Compute compute, RecurrentSlots slots, StateLayout layout) {
    this.compute = compute;
    units = new DeltaUnit[compute.pool().numWorkers()];
    for (int w = 0; w < units.length; w++) {
      units[w] = new DeltaUnit(compute.kernels(), slots, layout);
    }
    tapsOfLayer = new DeltaTaps[layout.numDeltaLayers()];
  }

  void run(GatedDeltaOperands operands, RowPlan plan) {
    this.operands = operands;
    this.plan = plan;
    DeltaTaps known = tapsOfLayer[operands.layer()];
    if (known == null || !known.isOf(operands)) {
      known = new DeltaTaps(operands);
      tapsOfLayer[operands.layer()] = known;
    }
    taps = known;
    compute.pool().run(this, plan.numSequences() * operands.numKeyHeads());
  }

  @Override
  public void run(int part, int worker) {
    GatedDeltaOperands operands = Objects.requireNonNull(this.operands);
    int keyHead = part % operands.numKeyHeads();
    units[worker].run(
        operands,
        Objects.requireNonNull(plan),
        part / operands.numKeyHeads(),
        keyHead,
        Objects.requireNonNull(taps).unit(keyHead));
  }
}
