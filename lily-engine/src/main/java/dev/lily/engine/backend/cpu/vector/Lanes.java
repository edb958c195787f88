package dev.lily.engine.backend.cpu.vector;

import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * The one vector shape of the process. Two shapes in one process would share profiles and keep the
 * compiler from inlining either.
 *
 * <p>Kernels call the Vector API directly, in flat loops and without helper methods that take or
 * return vectors: the compiler always inlines the API itself, but our own methods only within its
 * limits, and a vector that crosses a call is allocated.
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

  /** Bytes that widen to one vector, or to two where there is no vector of so few bytes. */
  static final VectorSpecies<Byte> BYTES =
      VectorSpecies.of(byte.class, VectorShape.forBitSize(Math.max(64, LANES * Byte.SIZE)));

  /** Vectors that {@link #BYTES} widen to. */
  static final int BYTE_PARTS = BYTES.length() / LANES;

  static final VectorSpecies<Short> SHORTS =
      VectorSpecies.of(short.class, VectorShape.forBitSize(LANES * Short.SIZE));

  private Lanes() {}

  /**
   * An offset that the compiler does not see through. It splits a loop in two to check computed
   * long offsets beforehand, which costs short loops more than a check in every step.
   *
   * @param offset not negative
   */
  static long opaque(int offset) {
    return (long) offset & Integer.MAX_VALUE;
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
