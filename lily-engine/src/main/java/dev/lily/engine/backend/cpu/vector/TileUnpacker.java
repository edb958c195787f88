package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.BYTES;
import static dev.lily.engine.backend.cpu.vector.Lanes.BYTE_PARTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.FLOATS;
import static dev.lily.engine.backend.cpu.vector.Lanes.INTS;
import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;
import static dev.lily.engine.backend.cpu.vector.Lanes.SHORTS;

import dev.lily.engine.backend.cpu.kernel.AffineMatrix;
import dev.lily.engine.backend.cpu.kernel.DenseMatrix;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Writes rows of weights as fp32 into a tile, interleaved four by four as {@link MicroKernels} read
 * them. A weight of an affine matrix is {@code fma(code, scale, bias)}, as in {@link PackedDot}.
 */
final class TileUnpacker {
  private static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ORDER);
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
      ShortVector bits =
          ShortVector.fromMemorySegment(SHORTS, halves, offset + (long) i * Short.BYTES, ORDER);
      ((IntVector) bits.convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
          .lanewise(VectorOperators.LSHL, 16)
          .reinterpretAsFloats()
          .intoArray(target, at + i);
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
    int loads = matrix.columns() / (2 * BYTES.length());
    int reciprocal = reciprocal(matrix.groupSize() / (2 * BYTES.length()));
    int odd = at + matrix.columns() / (2 * LANES) * STEP;
    MemorySegment segment = matrix.codes();
    for (int k = 0; k < loads; k++) {
      int g = group + ((k * reciprocal) >>> 16);
      int to = k * (BYTE_PARTS * STEP);
      FloatVector s = FloatVector.broadcast(FLOATS, groups[g]);
      FloatVector b = FloatVector.broadcast(FLOATS, groups[g + bias]);
      ByteVector bytes =
          ByteVector.fromMemorySegment(BYTES, segment, codes + (long) k * BYTES.length(), ORDER);
      IntVector pairs = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 0);
      FloatVector w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
      w.fma(s, b).intoArray(tile, at + to);
      w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
      w.fma(s, b).intoArray(tile, odd + to);
      if (BYTE_PARTS == 2) {
        pairs = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 1);
        w = (FloatVector) pairs.and(15).convert(VectorOperators.I2F, 0);
        w.fma(s, b).intoArray(tile, at + to + STEP);
        w = (FloatVector) pairs.lanewise(VectorOperators.LSHR, 4).convert(VectorOperators.I2F, 0);
        w.fma(s, b).intoArray(tile, odd + to + STEP);
      }
    }
  }

  /** One row of 8-bit codes, columns in their own order. */
  static void eightBit(
      AffineMatrix matrix, long codes, float[] groups, int group, int bias, float[] tile, int at) {
    int loads = matrix.columns() / BYTES.length();
    int reciprocal = reciprocal(matrix.groupSize() / BYTES.length());
    MemorySegment segment = matrix.codes();
    for (int k = 0; k < loads; k++) {
      int g = group + ((k * reciprocal) >>> 16);
      int to = at + k * (BYTE_PARTS * STEP);
      FloatVector s = FloatVector.broadcast(FLOATS, groups[g]);
      FloatVector b = FloatVector.broadcast(FLOATS, groups[g + bias]);
      ByteVector bytes =
          ByteVector.fromMemorySegment(BYTES, segment, codes + (long) k * BYTES.length(), ORDER);
      IntVector code = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 0);
      FloatVector w = (FloatVector) code.convert(VectorOperators.I2F, 0);
      w.fma(s, b).intoArray(tile, to);
      if (BYTE_PARTS == 2) {
        code = (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 1);
        w = (FloatVector) code.convert(VectorOperators.I2F, 0);
        w.fma(s, b).intoArray(tile, to + STEP);
      }
    }
  }

  /** The whole vectors of one dense row. */
  static void dense(DenseMatrix matrix, long values, float[] tile, int at) {
    switch (matrix.dtype()) {
      case BF16 -> bf16(matrix.values(), values, matrix.columns() / LANES, tile, at);
      case F32 -> f32(matrix.values(), values, matrix.columns() / LANES, tile, at);
    }
  }

  private static void bf16(MemorySegment values, long offset, int steps, float[] tile, int at) {
    for (int k = 0; k < steps; k++) {
      ShortVector bits =
          ShortVector.fromMemorySegment(
              SHORTS, values, offset + (long) k * LANES * Short.BYTES, ORDER);
      ((IntVector) bits.convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
          .lanewise(VectorOperators.LSHL, 16)
          .reinterpretAsFloats()
          .intoArray(tile, at + k * STEP);
    }
  }

  private static void f32(MemorySegment values, long offset, int steps, float[] tile, int at) {
    for (int k = 0; k < steps; k++) {
      FloatVector.fromMemorySegment(FLOATS, values, offset + (long) k * LANES * Float.BYTES, ORDER)
          .intoArray(tile, at + k * STEP);
    }
  }
}
