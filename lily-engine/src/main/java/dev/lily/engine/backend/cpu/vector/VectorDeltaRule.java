package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.DeltaHead;
import dev.lily.engine.backend.cpu.kernel.DeltaRuleKernels;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import jdk.incubator.vector.FloatVector;

/**
 * The recurrence with lanes over value columns, so that no sum runs across lanes. A step reads the
 * state twice and writes it once: first for what it holds under the key, then to update it and read
 * it under the query.
 */
final class VectorDeltaRule implements DeltaRuleKernels {
  private static final int WIDE = 4 * LANES;
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();
  private static final long BYTES = (long) LANES * Float.BYTES;

  @Override
  public int stateColumns() {
    return WIDE;
  }

  @Override
  public void convolve(
      float[] inputs, int row, float[] taps, int kernel, int channels, float[] out, int outOffset) {
    int whole = channels / LANES * LANES;
    Arrays.fill(out, outOffset, outOffset + whole, 0);
    for (int t = 0; t < kernel; t++) {
      addTap(inputs, (row + t) * channels, taps, t * channels, out, outOffset, whole);
    }
    for (int c = whole; c < channels; c++) {
      float sum = 0;
      for (int t = 0; t < kernel; t++) {
        sum = Math.fma(taps[t * channels + c], inputs[(row + t) * channels + c], sum);
      }
      out[outOffset + c] = sum;
    }
    VectorMath.silu(out, outOffset, out, outOffset, channels);
  }

  private static void addTap(
      float[] inputs, int inputAt, float[] taps, int tapAt, float[] out, int outAt, int count) {
    for (int c = 0; c < count; c += LANES) {
      FloatVector.fromArray(FLOATS, taps, tapAt + c)
          .fma(
              FloatVector.fromArray(FLOATS, inputs, inputAt + c),
              FloatVector.fromArray(FLOATS, out, outAt + c))
          .intoArray(out, outAt + c);
    }
  }

  @Override
  public void advance(MemorySegment state, long offset, DeltaHead head, int from, int to) {
    int j = from;
    for (; j <= to - WIDE; j += WIDE) {
      wide(state, offset, head, j);
    }
    for (; j < to; j++) {
      narrow(state, offset, head, j);
    }
  }

  private static void wide(MemorySegment state, long offset, DeltaHead head, int column) {
    float[] vectors = head.vectors();
    int keyDim = head.keyDim();
    int key = head.key();
    int query = head.query();
    int value = head.value() + column;
    long stride = (long) head.valueDim() * Float.BYTES;
    long start = offset + (long) column * Float.BYTES;
    FloatVector a0 = FloatVector.zero(FLOATS);
    FloatVector a1 = a0;
    FloatVector a2 = a0;
    FloatVector a3 = a0;
    for (int i = 0; i < keyDim; i++) {
      long at = start + i * stride;
      FloatVector k = FloatVector.broadcast(FLOATS, vectors[key + i]);
      a0 = FloatVector.fromMemorySegment(FLOATS, state, at, ORDER).fma(k, a0);
      a1 = FloatVector.fromMemorySegment(FLOATS, state, at + BYTES, ORDER).fma(k, a1);
      a2 = FloatVector.fromMemorySegment(FLOATS, state, at + 2 * BYTES, ORDER).fma(k, a2);
      a3 = FloatVector.fromMemorySegment(FLOATS, state, at + 3 * BYTES, ORDER).fma(k, a3);
    }
    FloatVector decay = FloatVector.broadcast(FLOATS, head.decay());
    FloatVector beta = FloatVector.broadcast(FLOATS, head.beta());
    FloatVector d0 = FloatVector.fromArray(FLOATS, vectors, value);
    FloatVector d1 = FloatVector.fromArray(FLOATS, vectors, value + LANES);
    FloatVector d2 = FloatVector.fromArray(FLOATS, vectors, value + 2 * LANES);
    FloatVector d3 = FloatVector.fromArray(FLOATS, vectors, value + 3 * LANES);
    d0 = d0.sub(a0.mul(decay)).mul(beta);
    d1 = d1.sub(a1.mul(decay)).mul(beta);
    d2 = d2.sub(a2.mul(decay)).mul(beta);
    d3 = d3.sub(a3.mul(decay)).mul(beta);
    a0 = FloatVector.zero(FLOATS);
    a1 = a0;
    a2 = a0;
    a3 = a0;
    for (int i = 0; i < keyDim; i++) {
      long at = start + i * stride;
      FloatVector k = FloatVector.broadcast(FLOATS, vectors[key + i]);
      FloatVector q = FloatVector.broadcast(FLOATS, vectors[query + i]);
      FloatVector s = FloatVector.fromMemorySegment(FLOATS, state, at, ORDER);
      s = k.fma(d0, s.mul(decay));
      s.intoMemorySegment(state, at, ORDER);
      a0 = q.fma(s, a0);
      s = FloatVector.fromMemorySegment(FLOATS, state, at + BYTES, ORDER);
      s = k.fma(d1, s.mul(decay));
      s.intoMemorySegment(state, at + BYTES, ORDER);
      a1 = q.fma(s, a1);
      s = FloatVector.fromMemorySegment(FLOATS, state, at + 2 * BYTES, ORDER);
      s = k.fma(d2, s.mul(decay));
      s.intoMemorySegment(state, at + 2 * BYTES, ORDER);
      a2 = q.fma(s, a2);
      s = FloatVector.fromMemorySegment(FLOATS, state, at + 3 * BYTES, ORDER);
      s = k.fma(d3, s.mul(decay));
      s.intoMemorySegment(state, at + 3 * BYTES, ORDER);
      a3 = q.fma(s, a3);
    }
    float[] output = head.output();
    int out = head.out() + column;
    a0.intoArray(output, out);
    a1.intoArray(output, out + LANES);
    a2.intoArray(output, out + 2 * LANES);
    a3.intoArray(output, out + 3 * LANES);
  }

  private static void narrow(MemorySegment state, long offset, DeltaHead head, int column) {
    float[] vectors = head.vectors();
    long stride = (long) head.valueDim() * Float.BYTES;
    long start = offset + (long) column * Float.BYTES;
    float read = 0;
    for (int i = 0; i < head.keyDim(); i++) {
      float s = state.get(ValueLayout.JAVA_FLOAT, start + i * stride);
      read = Math.fma(s, vectors[head.key() + i], read);
    }
    float delta = (vectors[head.value() + column] - read * head.decay()) * head.beta();
    float out = 0;
    for (int i = 0; i < head.keyDim(); i++) {
      float s = state.get(ValueLayout.JAVA_FLOAT, start + i * stride);
      s = Math.fma(vectors[head.key() + i], delta, s * head.decay());
      state.set(ValueLayout.JAVA_FLOAT, start + i * stride, s);
      out = Math.fma(vectors[head.query() + i], s, out);
    }
    head.output()[head.out() + column] = out;
  }
}
