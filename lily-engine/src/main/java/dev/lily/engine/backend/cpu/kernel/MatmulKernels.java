package dev.lily.engine.backend.cpu.kernel;

/**
 * Products with dense and affine matrices. The value of one (row, output) depends on that row and
 * that output only: the same order of accumulation whatever the number of rows, and whichever range
 * of outputs is asked for.
 */
public interface MatmulKernels {
  /** Elements of the tile buffer that {@link #multiply} needs for matrices of so many columns. */
  int tileSize(int columns);

  /**
   * Whether {@link #multiply} expects rows in the order that {@link #arrange} makes, for this
   * matrix, rather than as they are.
   */
  boolean arranges(CpuMatrix matrix);

  /**
   * Puts columns {@code from ≤ c < to} of a row into the order that packed codes are unpacked in.
   *
   * @param offset where the row starts
   * @param columns of the whole row
   * @param from a multiple of 32, as is {@code to}
   * @param targetOffset where the arranged row starts
   */
  void arrange(
      float[] row, int offset, int columns, int from, int to, float[] target, int targetOffset);

  /**
   * {@code output[i][o] = matrix[o] · input[i]} for outputs {@code from ≤ o < to} and rows {@code
   * first ≤ i < first + count} of the views.
   *
   * @param index which matrix of a stack
   * @param tile scratch of {@link #tileSize} elements that belongs to the calling thread
   */
  void multiply(
      CpuMatrix matrix,
      int index,
      int from,
      int to,
      RowView input,
      RowView output,
      int first,
      int count,
      float[] tile);
}
