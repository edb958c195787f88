package dev.lily.metal.check;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.metal.MetalBackendProvider;
import java.lang.foreign.Arena;
import java.util.function.DoubleConsumer;

/** Prefill passes that get longer and longer, to meet the watchdog if it is to be met. */
final class LongPass {
  private static final int VOCABULARY = 16;

  private final int rows;
  private final int hidden;
  private final int outputs;

  /**
   * @param rows tokens of a pass
   * @param hidden columns of the matrix that all of them are multiplied with
   * @param outputs its rows
   */
  LongPass(int rows, int hidden, int outputs) {
    this.rows = rows;
    this.hidden = hidden;
    this.outputs = outputs;
  }

  /**
   * Runs a pass, then one twice as long, until one takes long enough.
   *
   * @param enoughSeconds of GPU time
   * @param mostProducts of a pass; the last one has no more
   * @param progress is told the GPU seconds of each pass that completed
   * @return GPU seconds of the longest
   * @throws dev.lily.metal.device.CommandBufferException if the system ends one
   */
  double run(double enoughSeconds, int mostProducts, DoubleConsumer progress) {
    PassLimits limits = new PassLimits(rows, 1, 1, rows);
    double seconds = 0;
    try (Arena arena = Arena.ofConfined();
        Backend backend = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
      Matrix embedding = dense(arena, backend, VOCABULARY);
      Matrix weights = quantized(arena, backend);
      Tensor x = backend.tensor(rows, hidden);
      Tensor n = backend.tensor(rows, hidden);
      Tensor gain = backend.constant(new float[hidden]);
      Tensor out = backend.tensor(rows, outputs);
      RowPlan plan = new RowPlan(limits);
      plan.add(new int[rows], 0, rows, 0, new PageTable(), 0, 0, RowPlan.NO_SAMPLING);
      try (DeviceState state =
          backend.openState(
              new StateLayout(1, 1, 64, 16, 1, 1, 4, 48, 1, 16, 16, 1, 1, VOCABULARY),
              new ModelShape(hidden, 1, 64, 16, 1, 1, 16, 16, VOCABULARY),
              limits)) {
        for (int products = 1; products <= mostProducts && seconds < enoughSeconds; products *= 2) {
          ComputePass pass = backend.begin(plan, state);
          pass.embed(embedding, x);
          pass.addNormalize(x, null, gain, 1e-6f, n);
          for (int i = 0; i < products; i++) {
            pass.project(n, weights, out);
          }
          PendingPass pending = pass.submit();
          pending.await();
          seconds = pending.deviceNanos() / 1e9;
          progress.accept(seconds);
        }
      }
    }
    return seconds;
  }

  private Matrix dense(Arena arena, Backend backend, int matrixRows) {
    long bytes = 4L * matrixRows * hidden;
    return backend.matrix(
        new MatrixSource.Dense(
            "embedding", 1, matrixRows, hidden, DType.F32, bytes, arena.allocate(bytes)));
  }

  private Matrix quantized(Arena arena, Backend backend) {
    long elements = (long) outputs * hidden;
    return backend.matrix(
        new MatrixSource.Affine(
            "weights",
            1,
            outputs,
            hidden,
            64,
            4,
            arena.allocate(elements / 2, 16),
            arena.allocate(elements / 32, 16),
            arena.allocate(elements / 32, 16)));
  }
}
