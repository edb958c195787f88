package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.RowView;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;

/** Rows of one input in the column order that packed codes are unpacked in. */
final class RowArrangement implements WorkerPool.Task {
  private static final int ROWS_PER_PART = 8;

  // Rows of a power of two in length, one after the other, would share a few sets of the cache.
  private static final int PADDING = 16;

  private final Compute compute;
  private final float[] arranged;
  private float[] source;
  private int rows;
  private int columns;
  private boolean done;

  RowArrangement(Compute compute) {
    this.compute = compute;
    arranged = Compute.scratch(scratchElements(compute.maxRows(), compute.maxColumns()));
    source = arranged;
  }

  /** Takes up a new input {@code [rows, columns]}; nothing is done until a matrix needs it. */
  void input(float[] source, int rows, int columns) {
    this.source = source;
    this.rows = rows;
    this.columns = columns;
    done = false;
  }

  /** Elements of the arranged rows. */
  static long scratchElements(int maxRows, int maxColumns) {
    return maxRows * ((long) maxColumns + PADDING);
  }

  /** Shows the input as the matrix expects it, in an order of rows. */
  void show(CpuMatrix matrix, RowView view, int[] index) {
    if (!compute.kernels().matmul().arranges(matrix)) {
      view.set(source, columns, index);
      return;
    }
    if (!done) {
      compute.pool().run(this, Compute.ceilDiv(rows, ROWS_PER_PART));
      done = true;
    }
    view.set(arranged, columns + PADDING, index);
  }

  @Override
  public void run(int part, int worker) {
    int end = Math.min(rows, (part + 1) * ROWS_PER_PART);
    for (int r = part * ROWS_PER_PART; r < end; r++) {
      compute
          .kernels()
          .matmul()
          .arrange(source, r * columns, columns, 0, columns, arranged, r * (columns + PADDING));
    }
  }
}
