package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.NormKernels;

/** Norms with sums of squares in double precision. */
final class ScalarNorm implements NormKernels {
  @Override
  public void add(float[] x, float[] branch, int offset, int count) {
    for (int i = offset; i < offset + count; i++) {
      x[i] += branch[i];
    }
  }

  @Override
  public void rmsNorm(
      float[] x, int offset, int count, float[] gain, float eps, float[] out, int outOffset) {
    float factor = rms(x, offset, count, eps);
    for (int i = 0; i < count; i++) {
      out[outOffset + i] = x[offset + i] * factor * gain[i];
    }
  }

  @Override
  public void l2Norm(float[] x, int offset, int count, float eps, float factor) {
    float scale = (float) (factor / Math.sqrt(sumOfSquares(x, offset, count) + eps));
    for (int i = offset; i < offset + count; i++) {
      x[i] *= scale;
    }
  }

  @Override
  public void gatedNorm(
      float[] o,
      int offset,
      int count,
      float[] gain,
      float eps,
      float[] z,
      int zOffset,
      float[] y,
      int yOffset) {
    float factor = rms(o, offset, count, eps);
    for (int i = 0; i < count; i++) {
      y[yOffset + i] = o[offset + i] * factor * gain[i] * ScalarKernels.silu(z[zOffset + i]);
    }
  }

  private static float rms(float[] x, int offset, int count, float eps) {
    return (float) (1 / Math.sqrt(sumOfSquares(x, offset, count) / count + eps));
  }

  private static double sumOfSquares(float[] x, int offset, int count) {
    double sum = 0;
    for (int i = offset; i < offset + count; i++) {
      sum += (double) x[i] * x[i];
    }
    return sum;
  }
}
