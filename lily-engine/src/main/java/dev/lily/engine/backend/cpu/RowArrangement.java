package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;

/** Rows of one input in the column order that packed codes are unpacked in. */
final class RowArrangement implements WorkerPool.Task {
  private static final int ROWS_PER_PART = 8;

  private final Compute compute;
  private final float[] arranged;
  private float[] source;
  private int rows;
  private int columns;
  private boolean done;

  RowArrangement(Compute compute) {
    this.compute = compute;
    arranged = Compute.scratch((long) compute.maxRows() * compute.maxColumns());
    source = arranged;
  }

  /** Takes up a new input {@code [rows, columns]}; nothing is done until a matrix needs it. */
  void input(float[] source, int rows, int columns) {
    this.source = source;
    this.rows = rows;
    this.columns = columns;
    done = false;
  }

  /** The input as the matrix expects it. */
  float[] rowsFor(CpuMatrix matrix) {
    if (!compute.kernels().matmul().arranges(matrix)) {
      return source;
    }
    if (!done) {
      compute.pool().run(this, Compute.ceilDiv(rows, ROWS_PER_PART));
      done = true;
    }
    return arranged;
  }

  @Override
  public void run(int part, int worker) {
    int end = Math.min(rows, (part + 1) * ROWS_PER_PART);
    for (int r = part * ROWS_PER_PART; r < end; r++) {
      compute
          .kernels()
          .matmul()
          .arrange(source, r * columns, columns, 0, columns, arranged, r * columns);
    }
  }
}
