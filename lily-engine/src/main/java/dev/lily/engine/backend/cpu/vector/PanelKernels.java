package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.INTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.SHORTS;

import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Products of many rows with a block of a {@link PackedMatrix}, one group of columns at a time: its
 * codes are converted once into a panel that stays in the first-level cache, {@code [column][32]},
 * and applied to four rows after four. The arithmetic is that of {@link PackedMatmul}.
 */
final class PanelKernels {
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final int HALF = PackedMatmul.HALF;
  private static final int ROWS = PackedMatrix.BLOCK_ROWS;
  private static final int NIBBLE_0 = 0xf;
  private static final int NIBBLE_1 = 0xf0;
  private static final int NIBBLE_2 = 0xf00;

  private PanelKernels() {}

  /**
   * Converts the codes of a group, for one vector of words.
   *
   * @param codes byte offset of the group's codes
   */
  static void unpack(MemorySegment w, long codes, int steps, int lane, float[] panel, int at) {
    for (int k = 0; k < steps; k++) {
      long offset = codes + Lanes.opaque(k * PackedMatrix.STEP_BYTES + lane * Integer.BYTES);
      int to = at + k * (PackedMatrix.WORD_COLUMNS * ROWS) + lane;
      IntVector v = IntVector.fromMemorySegment(INTS, w, offset, ORDER);
      IntVector u = v.lanewise(VectorOperators.LSHR, 16);
      FloatVector f = (FloatVector) v.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to);
      f = (FloatVector) u.and(NIBBLE_0).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + HALF);
      f = (FloatVector) v.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + ROWS);
      f = (FloatVector) u.and(NIBBLE_1).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + ROWS + HALF);
      f = (FloatVector) v.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + 2 * ROWS);
      f = (FloatVector) u.and(NIBBLE_2).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + 2 * ROWS + HALF);
      f =
          (FloatVector)
              v.lanewise(VectorOperators.LSHR, 12).and(NIBBLE_0).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + 3 * ROWS);
      f = (FloatVector) v.lanewise(VectorOperators.LSHR, 28).convert(VectorOperators.I2F, 0);
      f.intoArray(panel, to + 3 * ROWS + HALF);
    }
  }

  /**
   * Adds a group to the sums of four rows, for one vector of words.
   *
   * @param group byte offset of the group
   * @param column first column of the group
   * @param sum where the sum of the group's columns is in an arranged row
   * @param panel at {@code panelAt} the converted codes
   * @param sums at {@code at} {@code [4][32]}
   */
  static void four(
      MemorySegment w,
      long group,
      int groupSize,
      int lane,
      float[] panel,
      int panelAt,
      float[] x,
      int row0,
      int row1,
      int row2,
      int row3,
      int column,
      int sum,
      float[] sums,
      int at) {
    int x0 = row0 + column;
    int x1 = row1 + column;
    int x2 = row2 + column;
    int x3 = row3 + column;
    int from = panelAt + lane;
    FloatVector a0 = FloatVector.zero(FLOATS);
    FloatVector a1 = a0;
    FloatVector b0 = a0;
    FloatVector b1 = a0;
    FloatVector c0 = a0;
    FloatVector c1 = a0;
    FloatVector d0 = a0;
    FloatVector d1 = a0;
    for (int k = 0; k < groupSize; k++) {
      FloatVector low = FloatVector.fromArray(FLOATS, panel, from + k * ROWS);
      FloatVector high = FloatVector.fromArray(FLOATS, panel, from + k * ROWS + HALF);
      FloatVector z = FloatVector.broadcast(FLOATS, x[x0 + k]);
      a0 = low.fma(z, a0);
      a1 = high.fma(z, a1);
      z = FloatVector.broadcast(FLOATS, x[x1 + k]);
      b0 = low.fma(z, b0);
      b1 = high.fma(z, b1);
      z = FloatVector.broadcast(FLOATS, x[x2 + k]);
      c0 = low.fma(z, c0);
      c1 = high.fma(z, c1);
      z = FloatVector.broadcast(FLOATS, x[x3 + k]);
      d0 = low.fma(z, d0);
      d1 = high.fma(z, d1);
    }
    long scales = group + (long) lane * Short.BYTES;
    long biases = scales + PackedMatrix.SCALE_BYTES;
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
    to = at + ROWS + lane;
    sumOfX = FloatVector.broadcast(FLOATS, x[row1 + sum]);
    t.fma(sumOfX, b0.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
    to = at + 2 * ROWS + lane;
    sumOfX = FloatVector.broadcast(FLOATS, x[row2 + sum]);
    t.fma(sumOfX, c0.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
    to = at + 3 * ROWS + lane;
    sumOfX = FloatVector.broadcast(FLOATS, x[row3 + sum]);
    t.fma(sumOfX, d0.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
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
    to = at + ROWS + lane + HALF;
    sumOfX = FloatVector.broadcast(FLOATS, x[row1 + sum]);
    t.fma(sumOfX, b1.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
    to = at + 2 * ROWS + lane + HALF;
    sumOfX = FloatVector.broadcast(FLOATS, x[row2 + sum]);
    t.fma(sumOfX, c1.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
    to = at + 3 * ROWS + lane + HALF;
    sumOfX = FloatVector.broadcast(FLOATS, x[row3 + sum]);
    t.fma(sumOfX, d1.fma(s, FloatVector.fromArray(FLOATS, sums, to))).intoArray(sums, to);
  }
}
