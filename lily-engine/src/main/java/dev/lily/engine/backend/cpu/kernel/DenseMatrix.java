package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.MatrixSource;
import java.lang.foreign.MemorySegment;

/** Unquantised bf16 or fp32 values. */
public final class DenseMatrix extends CpuMatrix {
  private final MemorySegment values;
  private final DType dtype;
  private final long strideBytes;

  DenseMatrix(MatrixSource.Dense source) {
    super(source);
    values = source.values();
    dtype = source.dtype();
    strideBytes = source.strideBytes();
  }

  public MemorySegment values() {
    return values;
  }

  public DType dtype() {
    return dtype;
  }

  /** Byte offset of a row's values. */
  public long offset(int matrix, int row) {
    return matrix * strideBytes + (long) row * columns() * dtype.bytes();
  }

  @Override
  public void readRow(int matrix, int row, float[] target, int offset) {
    readTail(matrix, row, 0, target, offset);
  }

  /** Writes the columns of a row from {@code column} on as fp32. */
  public void readTail(int matrix, int row, int column, float[] target, int offset) {
    long at = offset(matrix, row) + (long) column * dtype.bytes();
    int end = offset + columns() - column;
    switch (dtype) {
      case BF16 -> {
        for (int i = offset; i < end; i++, at += Short.BYTES) {
          target[i] = bf16(values, at);
        }
      }
      case F32 -> {
        for (int i = offset; i < end; i++, at += Float.BYTES) {
          target[i] = values.get(FLOAT, at);
        }
      }
    }
  }
}
