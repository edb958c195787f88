package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.INTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;
import static dev.lily.engine.backend.cpu.vector.Lanes.SHORTS;

import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;

/** One row of activations times a block of a {@link PackedMatrix}; see {@link PackedMatmul}. */
final class OneRowKernels {
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final int CODES = PackedMatmul.CODES;
  private static final int HALF = PackedMatmul.HALF;
  private static final int NIBBLE_0 = 0xf;
  private static final int NIBBLE_1 = 0xf0;
  private static final int NIBBLE_2 = 0xf00;

  private OneRowKernels() {}

  /** One vector of words: where a vector is as wide as half a block. */
  static void narrow(
      MemorySegment w,
      long block,
      int groups,
      int groupSize,
      int lane,
      float[] x,
      int row0,
      float[] sums,
      int at) {
    int steps = groupSize / PackedMatrix.WORD_COLUMNS;
    int groupBytes = CODES + steps * PackedMatrix.STEP_BYTES;
    for (int g = 0; g < groups; g++) {
      long group = block + (long) g * groupBytes;
      long codes = group + CODES + (long) lane * Integer.BYTES;
      int column = g * groupSize;
      FloatVector a0 = FloatVector.zero(FLOATS);
      FloatVector a1 = a0;
      for (int k = 0; k < steps; k++) {
        long offset = codes + Lanes.opaque(k * PackedMatrix.STEP_BYTES);
        int i = column + k * PackedMatrix.WORD_COLUMNS;
        IntVector v = IntVector.fromMemorySegment(INTS, w, offset, ORDER);
        IntVector u = v.lanewise(VectorOperators.LSHR, 16);
        FloatVector low = (FloatVector) v.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        FloatVector high = (FloatVector) u.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        FloatVector z = FloatVector.broadcast(FLOATS, x[row0 + i]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        low = (FloatVector) v.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 1]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        low = (FloatVector) v.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 2]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        low =
            (FloatVector)
                v.lanewise(VectorOperators.LSHR, 12).and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        high = (FloatVector) v.lanewise(VectorOperators.LSHR, 28).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 3]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
      }
      long scales = group + (long) lane * Short.BYTES;
      long biases = scales + PackedMatrix.SCALE_BYTES;
      int sum = groups * groupSize + g;
      FloatVector s =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, scales, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      FloatVector t =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, biases, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      int to = at + lane;
      FloatVector sumOfX = FloatVector.broadcast(FLOATS, x[row0 + sum]);
      t.fma(sumOfX, a0.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
      s =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, scales + HALF * Short.BYTES, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      t =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, biases + HALF * Short.BYTES, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      to = at + lane + HALF;
      sumOfX = FloatVector.broadcast(FLOATS, x[row0 + sum]);
      t.fma(sumOfX, a1.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
    }
  }

  /** Two vectors of words, so that there are sums enough to hide the latency of an addition. */
  static void wide(
      MemorySegment w,
      long block,
      int groups,
      int groupSize,
      int lane,
      float[] x,
      int row0,
      float[] sums,
      int at) {
    int steps = groupSize / PackedMatrix.WORD_COLUMNS;
    int groupBytes = CODES + steps * PackedMatrix.STEP_BYTES;
    for (int g = 0; g < groups; g++) {
      long group = block + (long) g * groupBytes;
      long codes = group + CODES + (long) lane * Integer.BYTES;
      int column = g * groupSize;
      FloatVector a0 = FloatVector.zero(FLOATS);
      FloatVector a1 = a0;
      FloatVector a2 = a0;
      FloatVector a3 = a0;
      for (int k = 0; k < steps; k++) {
        long offset = codes + Lanes.opaque(k * PackedMatrix.STEP_BYTES);
        int i = column + k * PackedMatrix.WORD_COLUMNS;
        IntVector v = IntVector.fromMemorySegment(INTS, w, offset, ORDER);
        IntVector u = v.lanewise(VectorOperators.LSHR, 16);
        FloatVector low = (FloatVector) v.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        FloatVector high = (FloatVector) u.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        FloatVector z = FloatVector.broadcast(FLOATS, x[row0 + i]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        low = (FloatVector) v.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 1]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        low = (FloatVector) v.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 2]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        low =
            (FloatVector)
                v.lanewise(VectorOperators.LSHR, 12).and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        high = (FloatVector) v.lanewise(VectorOperators.LSHR, 28).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 3]);
        a0 = low.fma(z, a0);
        a1 = high.fma(z, a1);
        v = IntVector.fromMemorySegment(INTS, w, offset + (long) LANES * Integer.BYTES, ORDER);
        u = v.lanewise(VectorOperators.LSHR, 16);
        low = (FloatVector) v.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i]);
        a2 = low.fma(z, a2);
        a3 = high.fma(z, a3);
        low = (FloatVector) v.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 1]);
        a2 = low.fma(z, a2);
        a3 = high.fma(z, a3);
        low = (FloatVector) v.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
        high = (FloatVector) u.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 2]);
        a2 = low.fma(z, a2);
        a3 = high.fma(z, a3);
        low =
            (FloatVector)
                v.lanewise(VectorOperators.LSHR, 12).and(NIBBLE_0).convert(VectorOperators.I2F, 0);
        high = (FloatVector) v.lanewise(VectorOperators.LSHR, 28).convert(VectorOperators.I2F, 0);
        z = FloatVector.broadcast(FLOATS, x[row0 + i + 3]);
        a2 = low.fma(z, a2);
        a3 = high.fma(z, a3);
      }
      long scales = group + (long) lane * Short.BYTES;
      long biases = scales + PackedMatrix.SCALE_BYTES;
      int sum = groups * groupSize + g;
      FloatVector s =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, scales, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      FloatVector t =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, biases, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      int to = at + lane;
      FloatVector sumOfX = FloatVector.broadcast(FLOATS, x[row0 + sum]);
      t.fma(sumOfX, a0.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
      s =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, scales + HALF * Short.BYTES, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      t =
          ((IntVector)
                  ShortVector.fromMemorySegment(SHORTS, w, biases + HALF * Short.BYTES, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      to = at + lane + HALF;
      sumOfX = FloatVector.broadcast(FLOATS, x[row0 + sum]);
      t.fma(sumOfX, a1.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
      s =
          ((IntVector)
                  ShortVector.fromMemorySegment(
                          SHORTS, w, scales + (long) LANES * Short.BYTES, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      t =
          ((IntVector)
                  ShortVector.fromMemorySegment(
                          SHORTS, w, biases + (long) LANES * Short.BYTES, ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      to = at + lane + LANES;
      sumOfX = FloatVector.broadcast(FLOATS, x[row0 + sum]);
      t.fma(sumOfX, a2.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
      s =
          ((IntVector)
                  ShortVector.fromMemorySegment(
                          SHORTS,
                          w,
                          scales + (long) LANES * Short.BYTES + HALF * Short.BYTES,
                          ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      t =
          ((IntVector)
                  ShortVector.fromMemorySegment(
                          SHORTS,
                          w,
                          biases + (long) LANES * Short.BYTES + HALF * Short.BYTES,
                          ORDER)
                      .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
              .lanewise(VectorOperators.LSHL, 16)
              .reinterpretAsFloats();
      to = at + lane + LANES + HALF;
      sumOfX = FloatVector.broadcast(FLOATS, x[row0 + sum]);
      t.fma(sumOfX, a3.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
    }
  }
}
