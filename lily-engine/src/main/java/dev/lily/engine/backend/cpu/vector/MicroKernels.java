package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import jdk.incubator.vector.FloatVector;

/**
 * Inner loops of a product: one to four rows times four outputs. Each is one flat loop with its
 * sums in registers; the compiler gives up on sums that are carried through nested loops. Weights
 * are interleaved, {@code [step][output][lane]}. Sums are read before and stored after, {@code
 * [row][output][lane]} with {@code stride} between rows, so that a product can be taken up again
 * where it stopped.
 */
final class MicroKernels {
  /** Outputs of one call. */
  static final int OUTPUTS = 4;

  private static final int STEP = OUTPUTS * LANES;

  private MicroKernels() {}

  static void rows1(float[] w, int wAt, int steps, float[] x, int x0, float[] sums, int at) {
    FloatVector a0 = FloatVector.fromArray(FLOATS, sums, at);
    FloatVector a1 = FloatVector.fromArray(FLOATS, sums, at + LANES);
    FloatVector a2 = FloatVector.fromArray(FLOATS, sums, at + 2 * LANES);
    FloatVector a3 = FloatVector.fromArray(FLOATS, sums, at + 3 * LANES);
    for (int k = 0; k < steps; k++) {
      int i = wAt + k * STEP;
      FloatVector w0 = FloatVector.fromArray(FLOATS, w, i);
      FloatVector w1 = FloatVector.fromArray(FLOATS, w, i + LANES);
      FloatVector w2 = FloatVector.fromArray(FLOATS, w, i + 2 * LANES);
      FloatVector w3 = FloatVector.fromArray(FLOATS, w, i + 3 * LANES);
      FloatVector v0 = FloatVector.fromArray(FLOATS, x, x0 + k * LANES);
      a0 = v0.fma(w0, a0);
      a1 = v0.fma(w1, a1);
      a2 = v0.fma(w2, a2);
      a3 = v0.fma(w3, a3);
    }
    a0.intoArray(sums, at);
    a1.intoArray(sums, at + LANES);
    a2.intoArray(sums, at + 2 * LANES);
    a3.intoArray(sums, at + 3 * LANES);
  }

  static void rows2(
      float[] w, int wAt, int steps, float[] x, int x0, int x1, float[] sums, int at, int stride) {
    FloatVector a0 = FloatVector.fromArray(FLOATS, sums, at);
    FloatVector a1 = FloatVector.fromArray(FLOATS, sums, at + LANES);
    FloatVector a2 = FloatVector.fromArray(FLOATS, sums, at + 2 * LANES);
    FloatVector a3 = FloatVector.fromArray(FLOATS, sums, at + 3 * LANES);
    FloatVector b0 = FloatVector.fromArray(FLOATS, sums, at + stride);
    FloatVector b1 = FloatVector.fromArray(FLOATS, sums, at + stride + LANES);
    FloatVector b2 = FloatVector.fromArray(FLOATS, sums, at + stride + 2 * LANES);
    FloatVector b3 = FloatVector.fromArray(FLOATS, sums, at + stride + 3 * LANES);
    for (int k = 0; k < steps; k++) {
      int i = wAt + k * STEP;
      FloatVector w0 = FloatVector.fromArray(FLOATS, w, i);
      FloatVector w1 = FloatVector.fromArray(FLOATS, w, i + LANES);
      FloatVector w2 = FloatVector.fromArray(FLOATS, w, i + 2 * LANES);
      FloatVector w3 = FloatVector.fromArray(FLOATS, w, i + 3 * LANES);
      FloatVector v0 = FloatVector.fromArray(FLOATS, x, x0 + k * LANES);
      a0 = v0.fma(w0, a0);
      a1 = v0.fma(w1, a1);
      a2 = v0.fma(w2, a2);
      a3 = v0.fma(w3, a3);
      FloatVector v1 = FloatVector.fromArray(FLOATS, x, x1 + k * LANES);
      b0 = v1.fma(w0, b0);
      b1 = v1.fma(w1, b1);
      b2 = v1.fma(w2, b2);
      b3 = v1.fma(w3, b3);
    }
    a0.intoArray(sums, at);
    a1.intoArray(sums, at + LANES);
    a2.intoArray(sums, at + 2 * LANES);
    a3.intoArray(sums, at + 3 * LANES);
    b0.intoArray(sums, at + stride);
    b1.intoArray(sums, at + stride + LANES);
    b2.intoArray(sums, at + stride + 2 * LANES);
    b3.intoArray(sums, at + stride + 3 * LANES);
  }

  static void rows3(
      float[] w,
      int wAt,
      int steps,
      float[] x,
      int x0,
      int x1,
      int x2,
      float[] sums,
      int at,
      int stride) {
    FloatVector a0 = FloatVector.fromArray(FLOATS, sums, at);
    FloatVector a1 = FloatVector.fromArray(FLOATS, sums, at + LANES);
    FloatVector a2 = FloatVector.fromArray(FLOATS, sums, at + 2 * LANES);
    FloatVector a3 = FloatVector.fromArray(FLOATS, sums, at + 3 * LANES);
    FloatVector b0 = FloatVector.fromArray(FLOATS, sums, at + stride);
    FloatVector b1 = FloatVector.fromArray(FLOATS, sums, at + stride + LANES);
    FloatVector b2 = FloatVector.fromArray(FLOATS, sums, at + stride + 2 * LANES);
    FloatVector b3 = FloatVector.fromArray(FLOATS, sums, at + stride + 3 * LANES);
    FloatVector c0 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride);
    FloatVector c1 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride + LANES);
    FloatVector c2 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride + 2 * LANES);
    FloatVector c3 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride + 3 * LANES);
    for (int k = 0; k < steps; k++) {
      int i = wAt + k * STEP;
      FloatVector w0 = FloatVector.fromArray(FLOATS, w, i);
      FloatVector w1 = FloatVector.fromArray(FLOATS, w, i + LANES);
      FloatVector w2 = FloatVector.fromArray(FLOATS, w, i + 2 * LANES);
      FloatVector w3 = FloatVector.fromArray(FLOATS, w, i + 3 * LANES);
      FloatVector v0 = FloatVector.fromArray(FLOATS, x, x0 + k * LANES);
      a0 = v0.fma(w0, a0);
      a1 = v0.fma(w1, a1);
      a2 = v0.fma(w2, a2);
      a3 = v0.fma(w3, a3);
      FloatVector v1 = FloatVector.fromArray(FLOATS, x, x1 + k * LANES);
      b0 = v1.fma(w0, b0);
      b1 = v1.fma(w1, b1);
      b2 = v1.fma(w2, b2);
      b3 = v1.fma(w3, b3);
      FloatVector v2 = FloatVector.fromArray(FLOATS, x, x2 + k * LANES);
      c0 = v2.fma(w0, c0);
      c1 = v2.fma(w1, c1);
      c2 = v2.fma(w2, c2);
      c3 = v2.fma(w3, c3);
    }
    a0.intoArray(sums, at);
    a1.intoArray(sums, at + LANES);
    a2.intoArray(sums, at + 2 * LANES);
    a3.intoArray(sums, at + 3 * LANES);
    b0.intoArray(sums, at + stride);
    b1.intoArray(sums, at + stride + LANES);
    b2.intoArray(sums, at + stride + 2 * LANES);
    b3.intoArray(sums, at + stride + 3 * LANES);
    c0.intoArray(sums, at + 2 * stride);
    c1.intoArray(sums, at + 2 * stride + LANES);
    c2.intoArray(sums, at + 2 * stride + 2 * LANES);
    c3.intoArray(sums, at + 2 * stride + 3 * LANES);
  }

  static void rows4(
      float[] w,
      int wAt,
      int steps,
      float[] x,
      int x0,
      int x1,
      int x2,
      int x3,
      float[] sums,
      int at,
      int stride) {
    FloatVector a0 = FloatVector.fromArray(FLOATS, sums, at);
    FloatVector a1 = FloatVector.fromArray(FLOATS, sums, at + LANES);
    FloatVector a2 = FloatVector.fromArray(FLOATS, sums, at + 2 * LANES);
    FloatVector a3 = FloatVector.fromArray(FLOATS, sums, at + 3 * LANES);
    FloatVector b0 = FloatVector.fromArray(FLOATS, sums, at + stride);
    FloatVector b1 = FloatVector.fromArray(FLOATS, sums, at + stride + LANES);
    FloatVector b2 = FloatVector.fromArray(FLOATS, sums, at + stride + 2 * LANES);
    FloatVector b3 = FloatVector.fromArray(FLOATS, sums, at + stride + 3 * LANES);
    FloatVector c0 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride);
    FloatVector c1 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride + LANES);
    FloatVector c2 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride + 2 * LANES);
    FloatVector c3 = FloatVector.fromArray(FLOATS, sums, at + 2 * stride + 3 * LANES);
    FloatVector d0 = FloatVector.fromArray(FLOATS, sums, at + 3 * stride);
    FloatVector d1 = FloatVector.fromArray(FLOATS, sums, at + 3 * stride + LANES);
    FloatVector d2 = FloatVector.fromArray(FLOATS, sums, at + 3 * stride + 2 * LANES);
    FloatVector d3 = FloatVector.fromArray(FLOATS, sums, at + 3 * stride + 3 * LANES);
    for (int k = 0; k < steps; k++) {
      int i = wAt + k * STEP;
      FloatVector w0 = FloatVector.fromArray(FLOATS, w, i);
      FloatVector w1 = FloatVector.fromArray(FLOATS, w, i + LANES);
      FloatVector w2 = FloatVector.fromArray(FLOATS, w, i + 2 * LANES);
      FloatVector w3 = FloatVector.fromArray(FLOATS, w, i + 3 * LANES);
      FloatVector v0 = FloatVector.fromArray(FLOATS, x, x0 + k * LANES);
      a0 = v0.fma(w0, a0);
      a1 = v0.fma(w1, a1);
      a2 = v0.fma(w2, a2);
      a3 = v0.fma(w3, a3);
      FloatVector v1 = FloatVector.fromArray(FLOATS, x, x1 + k * LANES);
      b0 = v1.fma(w0, b0);
      b1 = v1.fma(w1, b1);
      b2 = v1.fma(w2, b2);
      b3 = v1.fma(w3, b3);
      FloatVector v2 = FloatVector.fromArray(FLOATS, x, x2 + k * LANES);
      c0 = v2.fma(w0, c0);
      c1 = v2.fma(w1, c1);
      c2 = v2.fma(w2, c2);
      c3 = v2.fma(w3, c3);
      FloatVector v3 = FloatVector.fromArray(FLOATS, x, x3 + k * LANES);
      d0 = v3.fma(w0, d0);
      d1 = v3.fma(w1, d1);
      d2 = v3.fma(w2, d2);
      d3 = v3.fma(w3, d3);
    }
    a0.intoArray(sums, at);
    a1.intoArray(sums, at + LANES);
    a2.intoArray(sums, at + 2 * LANES);
    a3.intoArray(sums, at + 3 * LANES);
    b0.intoArray(sums, at + stride);
    b1.intoArray(sums, at + stride + LANES);
    b2.intoArray(sums, at + stride + 2 * LANES);
    b3.intoArray(sums, at + stride + 3 * LANES);
    c0.intoArray(sums, at + 2 * stride);
    c1.intoArray(sums, at + 2 * stride + LANES);
    c2.intoArray(sums, at + 2 * stride + 2 * LANES);
    c3.intoArray(sums, at + 2 * stride + 3 * LANES);
    d0.intoArray(sums, at + 3 * stride);
    d1.intoArray(sums, at + 3 * stride + LANES);
    d2.intoArray(sums, at + 3 * stride + 2 * LANES);
    d3.intoArray(sums, at + 3 * stride + 3 * LANES);
  }
}
