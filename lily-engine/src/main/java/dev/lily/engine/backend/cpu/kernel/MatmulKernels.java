package dev.lily.engine.backend.cpu.kernel;

/**
 * Products with dense and affine matrices. The value of one (row, output) depends on that row and
 * that output only: the same order of accumulation whatever the number of rows, and whichever range
 * of outputs is asked for.
 */
public interface MatmulKernels {
  /** Elements of the tile buffer that {@link #multiply} needs for matrices of so many columns. */
  int tileSize(int columns);

  /** The {@link #arrangement} of rows that are read as they are. */
  int AS_IT_IS = 0;

  /** Whether 4-bit matrices are to be made {@link PackedMatrix}. */
  boolean packs();

  /**
   * The order of columns that {@link #multiply} expects of rows for this matrix, made by {@link
   * #arrange}; matrices of equal numbers and as many columns take the same rows.
   */
  int arrangement(CpuMatrix matrix);

  /** Elements of an arranged row of so many columns, at most. */
  static int arrangedSize(int columns) {
    return columns + columns / AffineMatrix.GROUP_UNIT;
  }

  /**
   * Arranges columns {@code from ≤ c < to} of a row.
   *
   * @param matrix the matrix it is for
   * @param offset where the row starts
   * @param from a multiple of 32 and of a packed matrix's group size, as is {@code to}
   * @param target receives at most {@link #arrangedSize} elements
   * @param targetOffset where the arranged row starts
   */
  void arrange(
      CpuMatrix matrix,
      float[] row,
      int offset,
      int from,
      int to,
      float[] target,
      int targetOffset);

  /**
   * {@code output[i][o] = matrix[o] · input[i]} for outputs {@code from ≤ o < to} and rows {@code
   * first ≤ i < first + count} of the views.
   *
   * @param index which matrix of a stack
   * @param from a multiple of 32
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
