package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.NormKernels;
import jdk.incubator.vector.FloatVector;

/** Norms with lanes over the elements of a row. */
final class VectorNorm implements NormKernels {
  @Override
  public void add(float[] x, float[] branch, int offset, int count) {
    int i = offset;
    for (; i <= offset + count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, x, i)
          .add(FloatVector.fromArray(FLOATS, branch, i))
          .intoArray(x, i);
    }
    for (; i < offset + count; i++) {
      x[i] += branch[i];
    }
  }

  @Override
  public void rmsNorm(
      float[] x, int offset, int count, float[] gain, float eps, float[] out, int outOffset) {
    float factor = rms(x, offset, count, eps);
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, x, offset + i)
          .mul(factor)
          .mul(FloatVector.fromArray(FLOATS, gain, i))
          .intoArray(out, outOffset + i);
    }
    for (; i < count; i++) {
      out[outOffset + i] = x[offset + i] * factor * gain[i];
    }
  }

  @Override
  public void l2Norm(float[] x, int offset, int count, float eps, float factor) {
    float scale = (float) (factor / Math.sqrt(sumOfSquares(x, offset, count) + eps));
    int i = offset;
    for (; i <= offset + count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, x, i).mul(scale).intoArray(x, i);
    }
    for (; i < offset + count; i++) {
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
    VectorMath.silu(z, zOffset, y, yOffset, count);
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, o, offset + i)
          .mul(factor)
          .mul(FloatVector.fromArray(FLOATS, gain, i))
          .mul(FloatVector.fromArray(FLOATS, y, yOffset + i))
          .intoArray(y, yOffset + i);
    }
    for (; i < count; i++) {
      y[yOffset + i] = o[offset + i] * factor * gain[i] * y[yOffset + i];
    }
  }

  private static float rms(float[] x, int offset, int count, float eps) {
    return (float) (1 / Math.sqrt(sumOfSquares(x, offset, count) / count + eps));
  }

  // Four scalar sums cost little beside the products and, in double precision, cannot overflow.
  private static double sumOfSquares(float[] x, int offset, int count) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int i = offset;
    for (; i <= offset + count - 4; i += 4) {
      a += (double) x[i] * x[i];
      b += (double) x[i + 1] * x[i + 1];
      c += (double) x[i + 2] * x[i + 2];
      d += (double) x[i + 3] * x[i + 3];
    }
    for (; i < offset + count; i++) {
      a += (double) x[i] * x[i];
    }
    return (a + b) + (c + d);
  }
}
