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

/** One row of activations times one row of packed 4-bit codes, read where it lies. */
final class PackedDot {
  /** Columns of one step: two vectors of pairs, which must lie in one group. */
  static final int STEP_COLUMNS = 4 * LANES;

  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final int LAST_PART = BYTE_PARTS - 1;

  private PackedDot() {}

  /**
   * Leaves the sums of lanes in {@code sums}.
   *
   * @param scale place of the row's first scale in {@code groups}
   * @param bias distance from a scale to its bias
   * @param reciprocal see {@link TileUnpacker#reciprocal}
   * @param x arranged: even columns, then odd columns
   */
  static void sum(
      MemorySegment codes,
      long at,
      float[] groups,
      int scale,
      int bias,
      int reciprocal,
      int steps,
      float[] x,
      int even,
      float[] sums,
      int sumsAt) {
    int odd = even + steps * (2 * LANES);
    FloatVector a = FloatVector.zero(FLOATS);
    FloatVector b = FloatVector.zero(FLOATS);
    for (int k = 0; k < steps; k++) {
      int group = scale + ((k * reciprocal) >>> 16);
      int i = k * (2 * LANES);
      long offset = at + 2L * k * LANES;
      FloatVector s = FloatVector.broadcast(FLOATS, groups[group]);
      FloatVector t = FloatVector.broadcast(FLOATS, groups[group + bias]);
      ByteVector first = ByteVector.fromMemorySegment(BYTES, codes, offset, ORDER);
      ByteVector last =
          BYTE_PARTS == 2
              ? first
              : ByteVector.fromMemorySegment(BYTES, codes, offset + LANES, ORDER);
      IntVector pairs = (IntVector) first.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 0);
      FloatVector w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      a = FloatVector.fromArray(FLOATS, x, even + i).fma(w.fma(s, t), a);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      b = FloatVector.fromArray(FLOATS, x, odd + i).fma(w.fma(s, t), b);
      pairs = (IntVector) last.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, LAST_PART);
      w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      a = FloatVector.fromArray(FLOATS, x, even + i + LANES).fma(w.fma(s, t), a);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      b = FloatVector.fromArray(FLOATS, x, odd + i + LANES).fma(w.fma(s, t), b);
    }
    a.add(b).intoArray(sums, sumsAt);
  }
}
