package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.BYTES;
import static dev.lily.engine.backend.cpu.vector.Lanes.BYTE_PARTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.INTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.Int8Pages;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/** Over pages of int8: scales are applied to scores and to weights, not to elements. */
final class Int8AttentionLoops extends AttentionLoops {
  private static final ByteOrder ORDER = ByteOrder.nativeOrder();
  private static final int SECOND_PART = BYTE_PARTS - 1;

  @Override
  int apart() {
    return LANES;
  }

  /** Byte offset of the scale of a token's key. */
  private static long scales(KeyValuePages pages, AttentionSpan span, int token) {
    return ((Int8Pages) pages).keyScales(span.layer(), span.keyValueHead())
        + (long) token * Float.BYTES;
  }

  @Override
  void scores4(
      KeyValuePages pages,
      MemorySegment page,
      int token,
      AttentionSpan span,
      int query,
      int score) {
    long key = pages.keys(span.layer(), span.keyValueHead()) + token;
    float[] q = span.query();
    int headDim = pages.headDim();
    long stride = pages.tokenStride();
    FloatVector a0 = FloatVector.zero(FLOATS);
    FloatVector a1 = a0;
    FloatVector b0 = a0;
    FloatVector b1 = a0;
    FloatVector c0 = a0;
    FloatVector c1 = a0;
    FloatVector d0 = a0;
    FloatVector d1 = a0;
    for (int d = 0; d < headDim; d++) {
      long at = key + d * stride;
      ByteVector bytes = ByteVector.fromMemorySegment(BYTES, page, at, ORDER);
      FloatVector k0 =
          (FloatVector)
              bytes.convertShape(VectorOperators.B2I, INTS, 0).convert(VectorOperators.I2F, 0);
      if (BYTE_PARTS == 1) {
        bytes = ByteVector.fromMemorySegment(BYTES, page, at + LANES, ORDER);
      }
      FloatVector k1 =
          (FloatVector)
              bytes
                  .convertShape(VectorOperators.B2I, INTS, SECOND_PART)
                  .convert(VectorOperators.I2F, 0);
      FloatVector x = FloatVector.broadcast(FLOATS, q[query + d]);
      a0 = k0.fma(x, a0);
      a1 = k1.fma(x, a1);
      x = FloatVector.broadcast(FLOATS, q[query + headDim + d]);
      b0 = k0.fma(x, b0);
      b1 = k1.fma(x, b1);
      x = FloatVector.broadcast(FLOATS, q[query + 2 * headDim + d]);
      c0 = k0.fma(x, c0);
      c1 = k1.fma(x, c1);
      x = FloatVector.broadcast(FLOATS, q[query + 3 * headDim + d]);
      d0 = k0.fma(x, d0);
      d1 = k1.fma(x, d1);
    }
    long scales = scales(pages, span, token);
    FloatVector scale0 =
        FloatVector.fromMemorySegment(FLOATS, page, scales, ORDER).mul(span.scale());
    FloatVector scale1 =
        FloatVector.fromMemorySegment(FLOATS, page, scales + (long) LANES * Float.BYTES, ORDER)
            .mul(span.scale());
    float[] scores = span.scores();
    int next = span.scoreStride();
    a0.mul(scale0).intoArray(scores, score);
    a1.mul(scale1).intoArray(scores, score + LANES);
    b0.mul(scale0).intoArray(scores, score + next);
    b1.mul(scale1).intoArray(scores, score + next + LANES);
    c0.mul(scale0).intoArray(scores, score + 2 * next);
    c1.mul(scale1).intoArray(scores, score + 2 * next + LANES);
    d0.mul(scale0).intoArray(scores, score + 3 * next);
    d1.mul(scale1).intoArray(scores, score + 3 * next + LANES);
  }

  @Override
  void scores2(
      KeyValuePages pages,
      MemorySegment page,
      int token,
      AttentionSpan span,
      int query0,
      int query1,
      int score0,
      int score1) {
    long key = pages.keys(span.layer(), span.keyValueHead()) + token;
    float[] q = span.query();
    int headDim = pages.headDim();
    long stride = pages.tokenStride();
    FloatVector a0 = FloatVector.zero(FLOATS);
    FloatVector a1 = a0;
    FloatVector b0 = a0;
    FloatVector b1 = a0;
    for (int d = 0; d < headDim; d++) {
      long at = key + d * stride;
      ByteVector bytes = ByteVector.fromMemorySegment(BYTES, page, at, ORDER);
      FloatVector k0 =
          (FloatVector)
              bytes.convertShape(VectorOperators.B2I, INTS, 0).convert(VectorOperators.I2F, 0);
      if (BYTE_PARTS == 1) {
        bytes = ByteVector.fromMemorySegment(BYTES, page, at + LANES, ORDER);
      }
      FloatVector k1 =
          (FloatVector)
              bytes
                  .convertShape(VectorOperators.B2I, INTS, SECOND_PART)
                  .convert(VectorOperators.I2F, 0);
      FloatVector x = FloatVector.broadcast(FLOATS, q[query0 + d]);
      a0 = k0.fma(x, a0);
      a1 = k1.fma(x, a1);
      x = FloatVector.broadcast(FLOATS, q[query1 + d]);
      b0 = k0.fma(x, b0);
      b1 = k1.fma(x, b1);
    }
    long scales = scales(pages, span, token);
    FloatVector scale0 =
        FloatVector.fromMemorySegment(FLOATS, page, scales, ORDER).mul(span.scale());
    FloatVector scale1 =
        FloatVector.fromMemorySegment(FLOATS, page, scales + (long) LANES * Float.BYTES, ORDER)
            .mul(span.scale());
    float[] scores = span.scores();
    a0.mul(scale0).intoArray(scores, score0);
    a1.mul(scale1).intoArray(scores, score0 + LANES);
    b0.mul(scale0).intoArray(scores, score1);
    b1.mul(scale1).intoArray(scores, score1 + LANES);
  }

  @Override
  void weigh(KeyValuePages pages, MemorySegment page, int tokens, AttentionSpan span, int p) {
    long scales = ((Int8Pages) pages).valueScales(span.layer(), span.keyValueHead());
    float[] weights = span.scores();
    for (int h = 0; h < span.numHeads(); h++) {
      int at = p + h * span.scoreStride();
      int t = 0;
      for (; t <= tokens - LANES; t += LANES) {
        FloatVector.fromMemorySegment(FLOATS, page, scales + (long) t * Float.BYTES, ORDER)
            .mul(FloatVector.fromArray(FLOATS, weights, at + t))
            .intoArray(weights, at + t);
      }
      for (; t < tokens; t++) {
        weights[at + t] *= page.get(ValueLayout.JAVA_FLOAT, scales + (long) t * Float.BYTES);
      }
    }
  }

  @Override
  void values4(
      KeyValuePages pages,
      MemorySegment page,
      int first,
      int tokens,
      AttentionSpan span,
      int p,
      float[] sums,
      int sum,
      int size) {
    long value = pages.values(span.layer(), span.keyValueHead()) + first;
    float[] scores = span.scores();
    int next = span.scoreStride();
    long stride = pages.headDim();
    FloatVector a0 = FloatVector.fromArray(FLOATS, sums, sum);
    FloatVector a1 = FloatVector.fromArray(FLOATS, sums, sum + LANES);
    FloatVector b0 = FloatVector.fromArray(FLOATS, sums, sum + size);
    FloatVector b1 = FloatVector.fromArray(FLOATS, sums, sum + size + LANES);
    FloatVector c0 = FloatVector.fromArray(FLOATS, sums, sum + 2 * size);
    FloatVector c1 = FloatVector.fromArray(FLOATS, sums, sum + 2 * size + LANES);
    FloatVector d0 = FloatVector.fromArray(FLOATS, sums, sum + 3 * size);
    FloatVector d1 = FloatVector.fromArray(FLOATS, sums, sum + 3 * size + LANES);
    for (int t = 0; t < tokens; t++) {
      long at = value + t * stride;
      ByteVector bytes = ByteVector.fromMemorySegment(BYTES, page, at, ORDER);
      FloatVector v0 =
          (FloatVector)
              bytes.convertShape(VectorOperators.B2I, INTS, 0).convert(VectorOperators.I2F, 0);
      if (BYTE_PARTS == 1) {
        bytes = ByteVector.fromMemorySegment(BYTES, page, at + LANES, ORDER);
      }
      FloatVector v1 =
          (FloatVector)
              bytes
                  .convertShape(VectorOperators.B2I, INTS, SECOND_PART)
                  .convert(VectorOperators.I2F, 0);
      FloatVector x = FloatVector.broadcast(FLOATS, scores[p + t]);
      a0 = v0.fma(x, a0);
      a1 = v1.fma(x, a1);
      x = FloatVector.broadcast(FLOATS, scores[p + next + t]);
      b0 = v0.fma(x, b0);
      b1 = v1.fma(x, b1);
      x = FloatVector.broadcast(FLOATS, scores[p + 2 * next + t]);
      c0 = v0.fma(x, c0);
      c1 = v1.fma(x, c1);
      x = FloatVector.broadcast(FLOATS, scores[p + 3 * next + t]);
      d0 = v0.fma(x, d0);
      d1 = v1.fma(x, d1);
    }
    a0.intoArray(sums, sum);
    a1.intoArray(sums, sum + LANES);
    b0.intoArray(sums, sum + size);
    b1.intoArray(sums, sum + size + LANES);
    c0.intoArray(sums, sum + 2 * size);
    c1.intoArray(sums, sum + 2 * size + LANES);
    d0.intoArray(sums, sum + 3 * size);
    d1.intoArray(sums, sum + 3 * size + LANES);
  }

  @Override
  void values2(
      KeyValuePages pages,
      MemorySegment page,
      int first,
      int tokens,
      AttentionSpan span,
      int p0,
      int p1,
      float[] sums,
      int sum0,
      int sum1) {
    long value = pages.values(span.layer(), span.keyValueHead()) + first;
    float[] scores = span.scores();
    long stride = pages.headDim();
    FloatVector a0 = FloatVector.fromArray(FLOATS, sums, sum0);
    FloatVector a1 = FloatVector.fromArray(FLOATS, sums, sum0 + LANES);
    FloatVector b0 = FloatVector.fromArray(FLOATS, sums, sum1);
    FloatVector b1 = FloatVector.fromArray(FLOATS, sums, sum1 + LANES);
    for (int t = 0; t < tokens; t++) {
      long at = value + t * stride;
      ByteVector bytes = ByteVector.fromMemorySegment(BYTES, page, at, ORDER);
      FloatVector v0 =
          (FloatVector)
              bytes.convertShape(VectorOperators.B2I, INTS, 0).convert(VectorOperators.I2F, 0);
      if (BYTE_PARTS == 1) {
        bytes = ByteVector.fromMemorySegment(BYTES, page, at + LANES, ORDER);
      }
      FloatVector v1 =
          (FloatVector)
              bytes
                  .convertShape(VectorOperators.B2I, INTS, SECOND_PART)
                  .convert(VectorOperators.I2F, 0);
      FloatVector x = FloatVector.broadcast(FLOATS, scores[p0 + t]);
      a0 = v0.fma(x, a0);
      a1 = v1.fma(x, a1);
      x = FloatVector.broadcast(FLOATS, scores[p1 + t]);
      b0 = v0.fma(x, b0);
      b1 = v1.fma(x, b1);
    }
    a0.intoArray(sums, sum0);
    a1.intoArray(sums, sum0 + LANES);
    b0.intoArray(sums, sum1);
    b1.intoArray(sums, sum1 + LANES);
  }

  @Override
  void valuesTail(
      KeyValuePages pages,
      MemorySegment page,
      int first,
      int tokens,
      AttentionSpan span,
      int p,
      float[] sums,
      int sum) {
    long values = pages.values(span.layer(), span.keyValueHead());
    int headDim = pages.headDim();
    for (int d = first; d < headDim; d++) {
      float total = sums[sum + d];
      for (int t = 0; t < tokens; t++) {
        float value = page.get(ValueLayout.JAVA_BYTE, values + (long) t * headDim + d);
        total = Math.fma(span.scores()[p + t], value, total);
      }
      sums[sum + d] = total;
    }
  }
}
