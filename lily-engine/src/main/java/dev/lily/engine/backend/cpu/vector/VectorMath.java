package dev.lily.engine.backend.cpu.vector;

import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/**
 * The exponential and what follows from it, the same on every platform: the one of the Vector API
 * falls back to a call per lane where the JDK has no native library for it.
 */
final class VectorMath {
  private static final float LOG2_E = 1.442695f;
  // ln 2 in two parts.
  private static final float LN2_HIGH = 0.6931472f;
  private static final float LN2_LOW = -1.9046542e-9f;
  // 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits.
  private static final float ROUND = 12582912f;
  private static final int ROUND_BITS = Float.floatToRawIntBits(ROUND);
  private static final float MAX = 130;
  private static final float MIN = -150;
  // Minimax over |r| ≤ ln 2 / 2 for (e^r - 1 - r) / r², weighted for the relative error of e^r.
  private static final float C0 = 0.49999994f;
  private static final float C1 = 0.1666652f;
  private static final float C2 = 0.041668393f;
  private static final float C3 = 0.008368781f;
  private static final float C4 = 0.0013814467f;

  private VectorMath() {}

  /** {@code e^x} with a relative error below 1e-7; goes to infinity and to 0 as it should. */
  static FloatVector exp(FloatVector x) {
    FloatVector clamped = x.min(MAX).max(MIN);
    FloatVector rounded = clamped.fma(all(LOG2_E), all(ROUND));
    FloatVector n = rounded.sub(ROUND);
    FloatVector r = n.fma(all(-LN2_LOW), n.fma(all(-LN2_HIGH), clamped));
    FloatVector p = r.fma(all(C4), all(C3));
    p = p.fma(r, all(C2));
    p = p.fma(r, all(C1));
    p = p.fma(r, all(C0));
    p = p.fma(r.mul(r), r).add(1);
    // Two factors, because 2^n alone may be out of range where the result is not.
    IntVector exponent = rounded.reinterpretAsInts().sub(ROUND_BITS);
    IntVector half = exponent.lanewise(VectorOperators.ASHR, 1);
    return p.mul(powerOfTwo(half)).mul(powerOfTwo(exponent.sub(half)));
  }

  private static FloatVector all(float value) {
    return FloatVector.broadcast(Lanes.FLOATS, value);
  }

  private static FloatVector powerOfTwo(IntVector exponent) {
    return exponent.add(127).lanewise(VectorOperators.LSHL, 23).reinterpretAsFloats();
  }

  static FloatVector sigmoid(FloatVector x) {
    return all(1).div(exp(x.neg()).add(1));
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
