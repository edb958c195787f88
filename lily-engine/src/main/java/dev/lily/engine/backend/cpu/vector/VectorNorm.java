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
    float scale = (float) (factor / Math.sqrt((double) sumOfSquares(x, offset, count) + eps));
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
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector.fromArray(FLOATS, o, offset + i)
          .mul(factor)
          .mul(FloatVector.fromArray(FLOATS, gain, i))
          .mul(VectorMath.silu(FloatVector.fromArray(FLOATS, z, zOffset + i)))
          .intoArray(y, yOffset + i);
    }
    for (; i < count; i++) {
      y[yOffset + i] = o[offset + i] * factor * gain[i] * VectorMath.silu(z[zOffset + i]);
    }
  }

  private static float rms(float[] x, int offset, int count, float eps) {
    return (float) (1 / Math.sqrt((double) sumOfSquares(x, offset, count) / count + eps));
  }

  private static float sumOfSquares(float[] x, int offset, int count) {
    FloatVector a = FloatVector.zero(FLOATS);
    FloatVector b = a;
    int i = 0;
    for (; i <= count - 2 * LANES; i += 2 * LANES) {
      FloatVector u = FloatVector.fromArray(FLOATS, x, offset + i);
      FloatVector v = FloatVector.fromArray(FLOATS, x, offset + i + LANES);
      a = u.fma(u, a);
      b = v.fma(v, b);
    }
    float sum = Lanes.sum(a.add(b));
    for (; i < count; i++) {
      sum = Math.fma(x[offset + i], x[offset + i], sum);
    }
    return sum;
  }
}
