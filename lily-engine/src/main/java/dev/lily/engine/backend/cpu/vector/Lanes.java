package dev.lily.engine.backend.cpu.vector;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import jdk.incubator.vector.ByteVector;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * The one vector shape of the process, and loads that widen to fp32. Two shapes in one process
 * would share profiles and keep the compiler from inlining either.
 */
final class Lanes {
  /** Forces a width in bits: for tests, since only one width can be had in a process. */
  private static final String BITS_PROPERTY = "lily.vector.bits";

  /** The narrowest width that the kernels are written for. */
  static final int MIN_BITS = 128;

  /** The widest; hardware that has more runs at this. */
  private static final int MAX_BITS = 512;

  static final VectorSpecies<Float> FLOATS =
      VectorSpecies.of(
          float.class,
          VectorShape.forBitSize(
              Math.clamp(
                  Integer.getInteger(BITS_PROPERTY, VectorShape.preferredShape().vectorBitSize()),
                  MIN_BITS,
                  MAX_BITS)));

  /** Elements of a vector: 4, 8 or 16. */
  static final int LANES = FLOATS.length();

  static final VectorSpecies<Integer> INTS = FLOATS.withLanes(int.class);

  private static final VectorSpecies<Byte> BYTES =
      VectorSpecies.of(byte.class, VectorShape.forBitSize(Math.max(64, LANES * Byte.SIZE)));
  private static final VectorSpecies<Short> SHORTS =
      VectorSpecies.of(short.class, VectorShape.forBitSize(LANES * Short.SIZE));

  private static final IntVector BYTE_SHIFTS = IntVector.broadcast(INTS, 0).addIndex(Byte.SIZE);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private Lanes() {}

  /** Unsigned bytes as integers, one for each lane. */
  static IntVector bytes(MemorySegment segment, long offset) {
    if (LANES == 4) {
      // There is no vector of four bytes.
      return IntVector.broadcast(INTS, segment.get(INT, offset))
          .lanewise(VectorOperators.LSHR, BYTE_SHIFTS)
          .and(0xff);
    }
    ByteVector bytes =
        ByteVector.fromMemorySegment(BYTES, segment, offset, ByteOrder.LITTLE_ENDIAN);
    return (IntVector) bytes.convertShape(VectorOperators.ZERO_EXTEND_B2I, INTS, 0);
  }

  static FloatVector toFloats(IntVector values) {
    return (FloatVector) values.convert(VectorOperators.I2F, 0);
  }

  static FloatVector bf16(MemorySegment segment, long offset) {
    ShortVector halves =
        ShortVector.fromMemorySegment(SHORTS, segment, offset, ByteOrder.LITTLE_ENDIAN);
    return ((IntVector) halves.convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0))
        .lanewise(VectorOperators.LSHL, 16)
        .reinterpretAsFloats();
  }

  static FloatVector floats(MemorySegment segment, long offset) {
    return FloatVector.fromMemorySegment(FLOATS, segment, offset, ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * The sum of a stored vector in a fixed order, halves onto halves; {@code reduceLanes} leaves the
   * order to whoever compiles it.
   */
  static float sum(float[] v, int at) {
    return switch (LANES) {
      case 16 ->
          sum4(
              sum4(v[at], v[at + 8], v[at + 4], v[at + 12]),
              sum4(v[at + 2], v[at + 10], v[at + 6], v[at + 14]),
              sum4(v[at + 1], v[at + 9], v[at + 5], v[at + 13]),
              sum4(v[at + 3], v[at + 11], v[at + 7], v[at + 15]));
      case 8 ->
          sum4(
              v[at] + v[at + 4],
              v[at + 2] + v[at + 6],
              v[at + 1] + v[at + 5],
              v[at + 3] + v[at + 7]);
      default -> sum4(v[at], v[at + 2], v[at + 1], v[at + 3]);
    };
  }

  private static float sum4(float a, float b, float c, float d) {
    return (a + b) + (c + d);
  }
}
