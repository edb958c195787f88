package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Arrays;

/**
 * What every step computes with.
 *
 * @param maxColumns widest row that a matrix may be applied to
 * @param maxRows rows of the largest pass
 */
record Compute(CpuKernels kernels, WorkerPool pool, int maxColumns, int maxRows) {
  /** A multiply-add count that is worth handing to another thread. */
  private static final long PART_WORK = 1 << 16;

  private static final int MAX_OUTPUTS = 512;

  /**
   * Outputs of one part of a product, so that a part is neither trifling nor so large that threads
   * wait for the last one. A multiple of {@code unit}.
   */
  static int outputsPerPart(int columns, int rows, int unit) {
    long outputs = PART_WORK / ((long) columns * rows);
    return Math.clamp((outputs + unit - 1) / unit, 1, Math.max(1, MAX_OUTPUTS / unit)) * unit;
  }

  static int ceilDiv(int count, int size) {
    return (count + size - 1) / size;
  }

  /** A scratch array of NaN, so that reading what was not written shows. */
  static float[] scratch(long elements) {
    float[] array = new float[Math.toIntExact(elements)];
    Arrays.fill(array, Float.NaN);
    return array;
  }
}
