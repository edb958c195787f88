package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** A matrix or a stack of them. */
public abstract sealed class CpuMatrix implements Matrix
    permits AffineMatrix, DenseMatrix, PackedMatrix {
  static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** Stands where a matrix will be set before use. */
  public static final CpuMatrix NONE =
      of(new MatrixSource.Dense("none", 1, 0, 0, DType.F32, 0, MemorySegment.NULL));

  private final int numMatrices;
  private final int rows;
  private final int columns;

  CpuMatrix(MatrixSource source) {
    numMatrices = source.numMatrices();
    rows = source.rows();
    columns = source.columns();
  }

  /** Of the shape of another one. */
  CpuMatrix(CpuMatrix shape) {
    numMatrices = shape.numMatrices;
    rows = shape.rows;
    columns = shape.columns;
  }

  /**
   * Takes over a source, left where the checkpoint's mapping has it.
   *
   * @throws BackendException if no kernel can compute with it
   */
  public static CpuMatrix of(MatrixSource source) {
    return switch (source) {
      case MatrixSource.Affine affine -> new AffineMatrix(affine);
      case MatrixSource.Dense dense -> new DenseMatrix(dense);
    };
  }

  /**
   * The matrix as one of this back end.
   *
   * @throws BackendException if another back end loaded it
   */
  public static CpuMatrix of(Matrix matrix) {
    if (matrix instanceof CpuMatrix cpu) {
      return cpu;
    }
    throw new BackendException(
        "The CPU back end was given a " + matrix.getClass().getName() + "; it takes its own only");
  }

  @Override
  public final int numMatrices() {
    return numMatrices;
  }

  @Override
  public final int rows() {
    return rows;
  }

  @Override
  public final int columns() {
    return columns;
  }

  /**
   * Writes one row as fp32: a dense value as it is, a quantised one as {@code fma(scale, code,
   * bias)}.
   *
   * @param matrix index in the stack
   * @param target receives {@code columns} values from {@code offset} on
   */
  public abstract void readRow(int matrix, int row, float[] target, int offset);

  /** The bf16 value at a byte offset. */
  static float bf16(MemorySegment segment, long offset) {
    return Float.intBitsToFloat(segment.get(SHORT, offset) << 16);
  }
}
