package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.BYTES;
import static dev.lily.engine.backend.cpu.vector.Lanes.BYTE_PARTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.INTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/** One row of activations times two rows of packed 4-bit codes, read where they lie. */
final class PackedDot {
  /** Columns of one step: two vectors of pairs, which must lie in one group. */
  static final int STEP_COLUMNS = 4 * LANES;

  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final int LAST_PART = BYTE_PARTS - 1;

  private PackedDot() {}

  /**
   * Leaves the two sums of lanes in {@code sums}. Two rows share the loads of activations, two
   * vectors of pairs those of a scale and a bias.
   *
   * @param second distance in bytes from the first row of codes to the second
   * @param scale place of the first row's first scale in {@code groups}
   * @param next distance in {@code groups} from there to the second row's
   * @param bias distance from a scale to its bias
   * @param reciprocal see {@link TileUnpacker#reciprocal}
   * @param x arranged: even columns, then odd columns
   */
  static void two(
      MemorySegment codes,
      long at,
      long second,
      float[] groups,
      int scale,
      int next,
      int bias,
      int reciprocal,
      int steps,
      float[] x,
      int even,
      float[] sums,
      int sumsAt) {
    int odd = even + steps * (2 * LANES);
    FloatVector a0 = FloatVector.zero(FLOATS);
    FloatVector a1 = FloatVector.zero(FLOATS);
    FloatVector b0 = FloatVector.zero(FLOATS);
    FloatVector b1 = FloatVector.zero(FLOATS);
    for (int k = 0; k < steps; k++) {
      int group = scale + ((k * reciprocal) >>> 16);
      int i = k * (2 * LANES);
      long offset = at + Lanes.opaque(i);
      FloatVector x0 = FloatVector.fromArray(FLOATS, x, even + i);
      FloatVector x1 = FloatVector.fromArray(FLOATS, x, odd + i);
      FloatVector x2 = FloatVector.fromArray(FLOATS, x, even + i + LANES);
      FloatVector x3 = FloatVector.fromArray(FLOATS, x, odd + i + LANES);

      FloatVector s = FloatVector.broadcast(FLOATS, groups[group]);
      FloatVector t = FloatVector.broadcast(FLOATS, groups[group + bias]);
      ByteVector bytes = ByteVector.fromMemorySegment(BYTES, codes, offset, ORDER);
      IntVector pairs = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 0);
      FloatVector w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      a0 = x0.fma(w.fma(s, t), a0);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      a1 = x1.fma(w.fma(s, t), a1);
      if (BYTE_PARTS == 1) {
        bytes = ByteVector.fromMemorySegment(BYTES, codes, offset + LANES, ORDER);
      }
      pairs = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, LAST_PART);
      w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      a0 = x2.fma(w.fma(s, t), a0);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      a1 = x3.fma(w.fma(s, t), a1);

      s = FloatVector.broadcast(FLOATS, groups[group + next]);
      t = FloatVector.broadcast(FLOATS, groups[group + next + bias]);
      bytes = ByteVector.fromMemorySegment(BYTES, codes, offset + second, ORDER);
      pairs = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 0);
      w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      b0 = x0.fma(w.fma(s, t), b0);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      b1 = x1.fma(w.fma(s, t), b1);
      if (BYTE_PARTS == 1) {
        bytes = ByteVector.fromMemorySegment(BYTES, codes, offset + second + LANES, ORDER);
      }
      pairs = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, LAST_PART);
      w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      b0 = x2.fma(w.fma(s, t), b0);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      b1 = x3.fma(w.fma(s, t), b1);
    }
    a0.add(a1).intoArray(sums, sumsAt);
    b0.add(b1).intoArray(sums, sumsAt + LANES);
  }
}
