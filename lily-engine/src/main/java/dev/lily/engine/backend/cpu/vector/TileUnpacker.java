package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.AffineMatrix;
import dev.lily.engine.backend.cpu.kernel.DenseMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Writes rows of weights as fp32 into a tile, interleaved four by four as {@link MicroKernels} read
 * them. A weight of an affine matrix is {@code fma(code, scale, bias)}, as in {@link PackedDot}.
 */
final class TileUnpacker {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final int STEP = MicroKernels.OUTPUTS * LANES;

  private TileUnpacker() {}

  /**
   * Factor {@code f} with {@code k * f >>> 16 == k / stepsPerGroup} for the steps of any row: a
   * division would be the slowest thing in the loop.
   */
  static int reciprocal(int stepsPerGroup) {
    return ((1 << 16) + stepsPerGroup - 1) / stepsPerGroup;
  }

  /**
   * Scales and biases of consecutive rows as fp32: all scales from {@code at} on, then all biases.
   */
  static void groups(AffineMatrix matrix, int index, int row, int rows, float[] target, int at) {
    int count = rows * matrix.groupsPerRow();
    long offset = matrix.groupOffset(index, row);
    widen(matrix.scales(), offset, count, target, at);
    widen(matrix.biases(), offset, count, target, at + count);
  }

  private static void widen(MemorySegment halves, long offset, int count, float[] target, int at) {
    int i = 0;
    for (; i <= count - LANES; i += LANES) {
      Lanes.bf16(halves, offset + (long) i * Short.BYTES).intoArray(target, at + i);
    }
    for (; i < count; i++) {
      target[at + i] =
          Float.intBitsToFloat(halves.get(SHORT, offset + (long) i * Short.BYTES) << 16);
    }
  }

  /**
   * One row of 4-bit codes: even columns as the first half of the steps, odd ones as the second.
   *
   * @param group place of the row's first scale in {@code groups}
   * @param bias distance from a scale to its bias
   * @param at place of the row's first vector in {@code tile}
   */
  static void fourBit(
      AffineMatrix matrix, long codes, float[] groups, int group, int bias, float[] tile, int at) {
    int steps = matrix.columns() / (2 * LANES);
    int reciprocal = reciprocal(matrix.groupSize() / (2 * LANES));
    int odd = at + steps * STEP;
    MemorySegment segment = matrix.codes();
    for (int k = 0; k < steps; k++) {
      int g = group + ((k * reciprocal) >>> 16);
      FloatVector s = FloatVector.broadcast(FLOATS, groups[g]);
      FloatVector b = FloatVector.broadcast(FLOATS, groups[g + bias]);
      IntVector pairs = Lanes.bytes(segment, codes + (long) k * LANES);
      Lanes.toFloats(pairs.and(15)).fma(s, b).intoArray(tile, at + k * STEP);
      Lanes.toFloats(pairs.lanewise(VectorOperators.LSHR, 4))
          .fma(s, b)
          .intoArray(tile, odd + k * STEP);
    }
  }

  /** One row of 8-bit codes, columns in their own order. */
  static void eightBit(
      AffineMatrix matrix, long codes, float[] groups, int group, int bias, float[] tile, int at) {
    int steps = matrix.columns() / LANES;
    int reciprocal = reciprocal(matrix.groupSize() / LANES);
    MemorySegment segment = matrix.codes();
    for (int k = 0; k < steps; k++) {
      int g = group + ((k * reciprocal) >>> 16);
      FloatVector s = FloatVector.broadcast(FLOATS, groups[g]);
      FloatVector b = FloatVector.broadcast(FLOATS, groups[g + bias]);
      Lanes.toFloats(Lanes.bytes(segment, codes + (long) k * LANES))
          .fma(s, b)
          .intoArray(tile, at + k * STEP);
    }
  }

  /** The whole vectors of one dense row. */
  static void dense(DenseMatrix matrix, long values, float[] tile, int at) {
    int steps = matrix.columns() / LANES;
    MemorySegment segment = matrix.values();
    switch (matrix.dtype()) {
      case BF16 -> {
        for (int k = 0; k < steps; k++) {
          Lanes.bf16(segment, values + (long) k * LANES * Short.BYTES)
              .intoArray(tile, at + k * STEP);
        }
      }
      case F32 -> {
        for (int k = 0; k < steps; k++) {
          Lanes.floats(segment, values + (long) k * LANES * Float.BYTES)
              .intoArray(tile, at + k * STEP);
        }
      }
    }
  }
}
