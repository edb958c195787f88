package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/**
 * The exponential and what follows from it, the same on every platform: the one of the Vector API
 * falls back to a call per lane where the JDK has no native library for it. Written out in each
 * loop, because a vector that is handed to a method which the compiler does not inline is
 * allocated.
 *
 * <pre>
 * n = round(x / ln 2);  r = x - n ln 2;  e^x = 2^n · e^r
 * </pre>
 */
final class VectorMath {
  private static final float LOG2_E = 1.442695f;
  // ln 2 in two parts.
  private static final float LN2_HIGH = 0.6931472f;
  private static final float LN2_LOW = -1.9046542e-9f;
  // 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits. The bits that stand
  // for it are zero where the exponent of 2^n is taken from.
  private static final float ROUND = 12582912f;
  private static final int EXPONENT_BIAS = 127;
  private static final int MANTISSA_BITS = 23;
  // 2^n is a normal number for every n that rounds from this range. What lies beyond has the value
  // of its end: near enough to 0 and to infinity for what is made of it here.
  private static final float MIN = -87;
  private static final float MAX = 88;
  // Minimax over |r| ≤ ln 2 / 2 for (e^r - 1 - r) / r², weighted for the relative error of e^r.
  private static final float C0 = 0.49999994f;
  private static final float C1 = 0.1666652f;
  private static final float C2 = 0.041668393f;
  private static final float C3 = 0.008368781f;
  private static final float C4 = 0.0013814467f;

  private VectorMath() {}

  /** {@code out = e^(sign · x - shift)} with a relative error below 1e-7 of the power. */
  static void exp(
      float[] x, int offset, float sign, float shift, float[] out, int outOffset, int count) {
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector v = FloatVector.fromArray(FLOATS, x, offset + i).mul(sign).sub(shift);
      v = v.min(MAX).max(MIN);
      FloatVector rounded =
          v.fma(FloatVector.broadcast(FLOATS, LOG2_E), FloatVector.broadcast(FLOATS, ROUND));
      FloatVector n = rounded.sub(ROUND);
      FloatVector r =
          n.fma(
              FloatVector.broadcast(FLOATS, -LN2_LOW),
              n.fma(FloatVector.broadcast(FLOATS, -LN2_HIGH), v));
      FloatVector p =
          r.fma(FloatVector.broadcast(FLOATS, C4), FloatVector.broadcast(FLOATS, C3))
              .fma(r, FloatVector.broadcast(FLOATS, C2))
              .fma(r, FloatVector.broadcast(FLOATS, C1))
              .fma(r, FloatVector.broadcast(FLOATS, C0));
      p = p.fma(r.mul(r), r).add(1);
      p.mul(
              rounded
                  .reinterpretAsInts()
                  .add(EXPONENT_BIAS)
                  .lanewise(VectorOperators.LSHL, MANTISSA_BITS)
                  .reinterpretAsFloats())
          .intoArray(out, outOffset + i);
    }
    for (; i < count; i++) {
      out[outOffset + i] = (float) Math.exp(sign * x[offset + i] - shift);
    }
  }

  /** {@code out = silu(x)}; both may be the same elements. */
  static void silu(float[] x, int offset, float[] out, int outOffset, int count) {
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      FloatVector v = FloatVector.fromArray(FLOATS, x, offset + i);
      FloatVector minus = v.neg().min(MAX).max(MIN);
      FloatVector rounded =
          minus.fma(FloatVector.broadcast(FLOATS, LOG2_E), FloatVector.broadcast(FLOATS, ROUND));
      FloatVector n = rounded.sub(ROUND);
      FloatVector r =
          n.fma(
              FloatVector.broadcast(FLOATS, -LN2_LOW),
              n.fma(FloatVector.broadcast(FLOATS, -LN2_HIGH), minus));
      FloatVector p =
          r.fma(FloatVector.broadcast(FLOATS, C4), FloatVector.broadcast(FLOATS, C3))
              .fma(r, FloatVector.broadcast(FLOATS, C2))
              .fma(r, FloatVector.broadcast(FLOATS, C1))
              .fma(r, FloatVector.broadcast(FLOATS, C0));
      p = p.fma(r.mul(r), r).add(1);
      FloatVector power =
          rounded
              .reinterpretAsInts()
              .add(EXPONENT_BIAS)
              .lanewise(VectorOperators.LSHL, MANTISSA_BITS)
              .reinterpretAsFloats();
      v.div(p.fma(power, FloatVector.broadcast(FLOATS, 1))).intoArray(out, outOffset + i);
    }
    for (; i < count; i++) {
      out[outOffset + i] = (float) (x[offset + i] / (1 + Math.exp(-x[offset + i])));
    }
  }

  /** The largest of {@code count} elements, a multiple of {@link Lanes#LANES}. */
  static float max(float[] x, int offset, int count) {
    FloatVector max = FloatVector.fromArray(FLOATS, x, offset);
    for (int i = LANES; i < count; i += LANES) {
      max = max.max(FloatVector.fromArray(FLOATS, x, offset + i));
    }
    return max.reduceLanes(VectorOperators.MAX);
  }

  /**
   * Sums of every {@link Lanes#LANES}-th of {@code count} elements, a multiple of it.
   *
   * @param sums receives them from {@code at} on
   */
  static void sums(float[] x, int offset, int count, float[] sums, int at) {
    FloatVector sum = FloatVector.zero(FLOATS);
    for (int i = 0; i < count; i += LANES) {
      sum = sum.add(FloatVector.fromArray(FLOATS, x, offset + i));
    }
    sum.intoArray(sums, at);
  }

  /**
   * {@code x = x + y} for {@code count} elements of one array, a multiple of {@link Lanes#LANES}.
   */
  static void add(float[] array, int x, int y, int count) {
    for (int i = 0; i < count; i += LANES) {
      FloatVector.fromArray(FLOATS, array, x + i)
          .add(FloatVector.fromArray(FLOATS, array, y + i))
          .intoArray(array, x + i);
    }
  }
}
