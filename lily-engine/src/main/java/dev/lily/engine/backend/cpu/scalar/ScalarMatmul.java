package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.MatmulKernels;
import dev.lily.engine.backend.cpu.kernel.RowView;

/** Reads a row of weights once as fp32 and applies it to every row of activations. */
final class ScalarMatmul implements MatmulKernels {
  @Override
  public int tileSize(int columns) {
    return columns;
  }

  @Override
  public boolean packs() {
    return false;
  }

  @Override
  public int arrangement(CpuMatrix matrix) {
    return AS_IT_IS;
  }

  @Override
  public void arrange(
      CpuMatrix matrix,
      float[] row,
      int offset,
      int from,
      int to,
      float[] target,
      int targetOffset) {
    System.arraycopy(row, offset + from, target, targetOffset + from, to - from);
  }

  @Override
  public void multiply(
      CpuMatrix matrix,
      int index,
      int from,
      int to,
      RowView input,
      RowView output,
      int first,
      int count,
      float[] tile) {
    for (int o = from; o < to; o++) {
      matrix.readRow(index, o, tile, 0);
      for (int i = first; i < first + count; i++) {
        output.values()[output.offset(i) + o] =
            dot(tile, matrix.columns(), input.values(), input.offset(i));
      }
    }
  }

  /** Four sums over every fourth element, so that additions need not wait for each other. */
  private static float dot(float[] w, int count, float[] x, int offset) {
    float a = 0;
    float b = 0;
    float c = 0;
    float d = 0;
    int i = 0;
    for (; i < count - 3; i += 4) {
      a = Math.fma(x[offset + i], w[i], a);
      b = Math.fma(x[offset + i + 1], w[i + 1], b);
      c = Math.fma(x[offset + i + 2], w[i + 2], c);
      d = Math.fma(x[offset + i + 3], w[i + 3], d);
    }
    for (; i < count; i++) {
      a = Math.fma(x[offset + i], w[i], a);
    }
    return (a + b) + (c + d);
  }
}
