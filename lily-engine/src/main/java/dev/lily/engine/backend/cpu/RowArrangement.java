package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.MatmulKernels;
import dev.lily.engine.backend.cpu.kernel.RowView;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Arrays;

/** Rows of one input in the order of columns that matrices expect. */
final class RowArrangement {
  private static final int ROWS_PER_PART = 8;

  // Rows of a power of two in length, one after the other, would share a few sets of the cache.
  private static final int PADDING = 16;

  private final Compute compute;
  private Arranged[] arranged;
  private float[] source = {};
  private int rows;
  private int columns;

  RowArrangement(Compute compute) {
    this.compute = compute;
    // The matrices of a model commonly expect one order; another one's rows come on demand.
    arranged = new Arranged[] {new Arranged()};
  }

  /** Takes up a new input {@code [rows, columns]}; nothing is done until a matrix needs it. */
  void input(float[] source, int rows, int columns) {
    this.source = source;
    this.rows = rows;
    this.columns = columns;
    for (Arranged order : arranged) {
      order.done = false;
    }
  }

  /** Elements of the arranged rows of one order. */
  static long scratchElements(int maxRows, int maxColumns) {
    return maxRows * (long) stride(maxColumns);
  }

  private static int stride(int columns) {
    return MatmulKernels.arrangedSize(columns) + PADDING;
  }

  /** Shows the input as the matrix expects it, in an order of rows. */
  void show(CpuMatrix matrix, RowView view, int[] index) {
    int arrangement = compute.kernels().matmul().arrangement(matrix);
    if (arrangement == MatmulKernels.AS_IT_IS) {
      view.set(source, columns, index);
      return;
    }
    Arranged order = order(arrangement);
    if (!order.done) {
      order.matrix = matrix;
      compute.pool().run(order, Compute.ceilDiv(rows, ROWS_PER_PART));
      order.done = true;
    }
    view.set(order.values, stride(columns), index);
  }

  private Arranged order(int arrangement) {
    for (Arranged order : arranged) {
      if (order.arrangement == arrangement || order.arrangement == MatmulKernels.AS_IT_IS) {
        order.arrangement = arrangement;
        return order;
      }
    }
    arranged = Arrays.copyOf(arranged, arranged.length + 1);
    Arranged order = new Arranged();
    order.arrangement = arrangement;
    arranged[arranged.length - 1] = order;
    return order;
  }

  private final class Arranged implements WorkerPool.Task {
    private final float[] values =
        Compute.scratch(scratchElements(compute.maxRows(), compute.maxColumns()));
    private int arrangement = MatmulKernels.AS_IT_IS;
    private CpuMatrix matrix = CpuMatrix.NONE;
    private boolean done;

    @Override
    public void run(int part, int worker) {
      int end = Math.min(rows, (part + 1) * ROWS_PER_PART);
      for (int r = part * ROWS_PER_PART; r < end; r++) {
        compute
            .kernels()
            .matmul()
            .arrange(matrix, source, r * columns, 0, columns, values, r * stride(columns));
      }
    }
  }
}
