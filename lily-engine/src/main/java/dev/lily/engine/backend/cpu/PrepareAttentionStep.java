package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import dev.lily.engine.backend.cpu.kernel.NormKernels;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Head norms, rotary embedding and the append to the pages: parts are rows. */
final class PrepareAttentionStep implements WorkerPool.Task {
  private static final int ROWS_PER_PART = 4;

  private final Compute compute;
  private final KeyValuePages pages;
  private final RotaryTable rotary;
  private final float[][] rotated;
  private @Nullable AttentionOperands operands;
  private @Nullable RowPlan plan;

  PrepareAttentionStep(Compute compute, KeyValuePages pages) {
    this.compute = compute;
    this.pages = pages;
    rotary = new RotaryTable(compute.maxRows(), pages.headDim());
    rotated = new float[compute.pool().numWorkers()][pages.headDim()];
  }

  /** A new pass begins. */
  void begin() {
    rotary.clear();
  }

  void run(AttentionOperands operands, RowPlan plan) {
    this.operands = operands;
    this.plan = plan;
    for (int s = 0; s < plan.numSequences(); s++) {
      int tokens = plan.position(s) + plan.numRows(s);
      if ((long) plan.pages(s).size() * pages.pageTokens() < tokens) {
        throw new BackendException(
            "A sequence of %d tokens has %d pages of %d tokens"
                .formatted(tokens, plan.pages(s).size(), pages.pageTokens()));
      }
      int end = Compute.ceilDiv(tokens, pages.pageTokens());
      for (int page = plan.position(s) / pages.pageTokens(); page < end; page++) {
        pages.prepare(plan.pages(s).page(page));
      }
    }
    rotary.prepare(plan, operands.rotaryDim(), operands.ropeTheta());
    compute.pool().run(this, Compute.ceilDiv(plan.numRows(), ROWS_PER_PART));
  }

  @Override
  public void run(int part, int worker) {
    AttentionOperands operands = Objects.requireNonNull(this.operands);
    RowPlan plan = Objects.requireNonNull(this.plan);
    int end = Math.min(plan.numRows(), (part + 1) * ROWS_PER_PART);
    for (int row = part * ROWS_PER_PART; row < end; row++) {
      queries(operands, row);
      append(operands, plan, row, rotated[worker]);
    }
  }

  private void queries(AttentionOperands operands, int row) {
    NormKernels norm = compute.kernels().norm();
    float[] source = CpuTensor.values(operands.queryAndGate());
    float[] query = CpuTensor.values(operands.query());
    float[] gate = CpuTensor.values(operands.gate());
    float[] gain = CpuTensor.values(operands.queryGain());
    int headDim = operands.headDim();
    for (int h = 0; h < operands.numHeads(); h++) {
      int to = (row * operands.numHeads() + h) * headDim;
      norm.rmsNorm(source, 2 * to, headDim, gain, operands.eps(), query, to);
      rotary.rotate(row, query, to);
      System.arraycopy(source, 2 * to + headDim, gate, to, headDim);
    }
  }

  private void append(AttentionOperands operands, RowPlan plan, int row, float[] rotated) {
    float[] key = CpuTensor.values(operands.key());
    float[] value = CpuTensor.values(operands.value());
    float[] gain = CpuTensor.values(operands.keyGain());
    int headDim = operands.headDim();
    int position = plan.positionOf(row);
    int page = plan.pages(plan.sequenceOf(row)).page(position / pages.pageTokens());
    int token = position % pages.pageTokens();
    for (int h = 0; h < operands.numKeyValueHeads(); h++) {
      int at = (row * operands.numKeyValueHeads() + h) * headDim;
      compute.kernels().norm().rmsNorm(key, at, headDim, gain, operands.eps(), rotated, 0);
      rotary.rotate(row, rotated, 0);
      pages.put(page, operands.layer(), h, token, rotated, 0, value, at);
    }
  }
}
