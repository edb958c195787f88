package dev.lily.engine.backend.cpu.vector;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/**
 * The exponential and what follows from it, the same on every platform: the one of the Vector API
 * falls back to a call per lane where the JDK has no native library for it.
 */
final class VectorMath {
  private static final float LOG2_E = 1.44269504f;
  // ln 2 in two parts; the first times any exponent is exact.
  private static final float LN2_HIGH = 0.693359375f;
  private static final float LN2_LOW = -2.12194440e-4f;
  // 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits.
  private static final float ROUND = 12582912f;
  private static final int ROUND_BITS = Float.floatToRawIntBits(ROUND);
  private static final float MAX = 130;
  private static final float MIN = -150;

  private VectorMath() {}

  /** {@code e^x} with a relative error below 2e-7; goes to infinity and to 0 as it should. */
  static FloatVector exp(FloatVector x) {
    FloatVector clamped = x.min(MAX).max(MIN);
    FloatVector rounded = clamped.mul(LOG2_E).add(ROUND);
    FloatVector n = rounded.sub(ROUND);
    FloatVector r = n.mul(-LN2_LOW).add(n.mul(-LN2_HIGH).add(clamped));
    FloatVector p = r.mul(1.9875691500e-4f).add(1.3981999507e-3f);
    p = p.mul(r).add(8.3334519073e-3f);
    p = p.mul(r).add(4.1665795894e-2f);
    p = p.mul(r).add(1.6666665459e-1f);
    p = p.mul(r).add(5.0000001201e-1f);
    p = p.mul(r.mul(r)).add(r).add(1);
    // Two factors, because 2^n alone may be out of range where the result is not.
    IntVector exponent = rounded.reinterpretAsInts().sub(ROUND_BITS);
    IntVector half = exponent.lanewise(VectorOperators.ASHR, 1);
    return p.mul(powerOfTwo(half)).mul(powerOfTwo(exponent.sub(half)));
  }

  private static FloatVector powerOfTwo(IntVector exponent) {
    return exponent.add(127).lanewise(VectorOperators.LSHL, 23).reinterpretAsFloats();
  }

  static FloatVector sigmoid(FloatVector x) {
    FloatVector one = FloatVector.broadcast(Lanes.FLOATS, 1);
    return one.div(exp(x.neg()).add(1));
  }

  static FloatVector silu(FloatVector x) {
    return x.div(exp(x.neg()).add(1));
  }

  static float sigmoid(float x) {
    return (float) (1 / (1 + Math.exp(-x)));
  }

  static float silu(float x) {
    return (float) (x / (1 + Math.exp(-x)));
  }
}
