package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/** One row of activations times two rows of packed 4-bit codes, read where they lie. */
final class PackedDot {
  private PackedDot() {}

  /**
   * Leaves the two sums of lanes in {@code sums}. Two outputs with two sums each hide the latency
   * of the additions; with more the method outgrows what the compiler will inline vectors into.
   *
   * @param second distance in bytes from the first row of codes to the second
   * @param scale places of the scales of both rows in {@code groups}
   * @param bias distance in {@code groups} from a scale to its bias
   * @param reciprocal see {@link TileUnpacker#reciprocal}
   * @param x arranged: even columns, then odd columns
   */
  static void two(
      MemorySegment codes,
      long at,
      long second,
      float[] groups,
      int scale,
      int secondScale,
      int bias,
      int reciprocal,
      int steps,
      float[] x,
      int even,
      float[] sums,
      int sumsAt) {
    int odd = even + steps * LANES;
    FloatVector a0 = FloatVector.zero(FLOATS);
    FloatVector a1 = a0;
    FloatVector b0 = a0;
    FloatVector b1 = a0;
    for (int k = 0; k < steps; k++) {
      int group = (k * reciprocal) >>> 16;
      long offset = at + (long) k * LANES;
      FloatVector x0 = FloatVector.fromArray(FLOATS, x, even + k * LANES);
      FloatVector x1 = FloatVector.fromArray(FLOATS, x, odd + k * LANES);
      FloatVector s = FloatVector.broadcast(FLOATS, groups[scale + group]);
      FloatVector b = FloatVector.broadcast(FLOATS, groups[scale + bias + group]);
      IntVector pairs = Lanes.bytes(codes, offset);
      a0 = x0.fma(Lanes.toFloats(pairs.and(15)).fma(s, b), a0);
      a1 = x1.fma(Lanes.toFloats(pairs.lanewise(VectorOperators.LSHR, 4)).fma(s, b), a1);
      s = FloatVector.broadcast(FLOATS, groups[secondScale + group]);
      b = FloatVector.broadcast(FLOATS, groups[secondScale + bias + group]);
      pairs = Lanes.bytes(codes, offset + second);
      b0 = x0.fma(Lanes.toFloats(pairs.and(15)).fma(s, b), b0);
      b1 = x1.fma(Lanes.toFloats(pairs.lanewise(VectorOperators.LSHR, 4)).fma(s, b), b1);
    }
    a0.add(a1).intoArray(sums, sumsAt);
    b0.add(b1).intoArray(sums, sumsAt + LANES);
  }
}
