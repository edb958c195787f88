package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.Tensor;

/** fp32 activations on the heap, {@code [rows, columns]}, row-major. */
public final class CpuTensor implements Tensor {
  private final float[] values;
  private final int rows;
  private final int columns;

  /**
   * Wraps an array.
   *
   * @param values {@code rows * columns} elements; handed over, not copied
   */
  public CpuTensor(float[] values, int rows, int columns) {
    this.values = values;
    this.rows = rows;
    this.columns = columns;
  }

  /**
   * The elements of a tensor of this back end.
   *
   * @throws BackendException if another back end made it
   */
  public static float[] values(Tensor tensor) {
    if (tensor instanceof CpuTensor cpu) {
      return cpu.values;
    }
    throw new BackendException(
        "The CPU back end was given a " + tensor.getClass().getName() + "; it takes its own only");
  }

  /** The elements themselves; written by kernels. */
  public float[] values() {
    return values;
  }

  @Override
  public int rows() {
    return rows;
  }

  @Override
  public int columns() {
    return columns;
  }
}
