package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import org.jspecify.annotations.Nullable;

/** Verbs that treat each row alone: embedding, residual addition and norm, choice of rows. */
final class RowSteps {
  private static final int ROWS_PER_PART = 4;

  private final Compute compute;
  private final Normalize normalize = new Normalize();

  RowSteps(Compute compute) {
    this.compute = compute;
  }

  /** One row of an embedding. */
  void embed(CpuMatrix embedding, int token, float[] x, int row) {
    if (token < 0 || token >= embedding.rows()) {
      throw new BackendException(
          "Token %d of row %d is outside the embedding of %d rows"
              .formatted(token, row, embedding.rows()));
    }
    embedding.readRow(0, token, x, row * embedding.columns());
  }

  /** {@code x += branch; n = rmsNorm(x)} for each row. */
  void addNormalize(
      float[] x,
      float @Nullable [] branch,
      float[] gain,
      float eps,
      float[] n,
      int rows,
      int columns) {
    normalize.x = x;
    normalize.branch = branch;
    normalize.gain = gain;
    normalize.eps = eps;
    normalize.n = n;
    normalize.rows = rows;
    normalize.columns = columns;
    compute.pool().run(normalize, Compute.ceilDiv(rows, ROWS_PER_PART));
  }

  /** {@code rows[i] = x[logitRow(i)] + branch[logitRow(i)]}. */
  void gather(RowPlan plan, float[] x, float[] branch, float[] rows, int columns) {
    for (int i = 0; i < plan.numLogitRows(); i++) {
      int from = plan.logitRow(i) * columns;
      for (int c = 0; c < columns; c++) {
        rows[i * columns + c] = x[from + c] + branch[from + c];
      }
    }
  }

  private final class Normalize implements WorkerPool.Task {
    private float[] x = {};
    private float @Nullable [] branch;
    private float[] gain = {};
    private float[] n = {};
    private float eps;
    private int rows;
    private int columns;

    @Override
    public void run(int part, int worker) {
      int end = Math.min(rows, (part + 1) * ROWS_PER_PART);
      for (int r = part * ROWS_PER_PART; r < end; r++) {
        int offset = r * columns;
        if (branch != null) {
          compute.kernels().norm().add(x, branch, offset, columns);
        }
        compute.kernels().norm().rmsNorm(x, offset, columns, gain, eps, n, offset);
      }
    }
  }
}
