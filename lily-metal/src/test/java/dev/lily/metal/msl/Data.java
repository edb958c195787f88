package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import org.assertj.core.data.Offset;

/** Buffers of kernels: made, filled, poisoned and read. */
final class Data {
  /** Half a unit in the last place of bf16. */
  static final double BF16 = 0x1p-8;

  private final Random random;

  Data(long seed) {
    random = new Random(seed);
  }

  int below(int bound) {
    return random.nextInt(bound);
  }

  float[] uniform(int count, double low, double high) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) (low + (high - low) * random.nextDouble());
    }
    return values;
  }

  /** Values that bf16 holds. */
  float[] uniformBf16(int count, double low, double high) {
    float[] values = uniform(count, low, high);
    for (int i = 0; i < count; i++) {
      values[i] = toBf16(values[i]);
    }
    return values;
  }

  static float toBf16(float value) {
    int bits = Float.floatToRawIntBits(value);
    return Float.intBitsToFloat((bits + 0x7FFF + (bits >>> 16 & 1)) & 0xFFFF0000);
  }

  static MemorySegment bytes(long count) {
    return Arena.ofAuto().allocate(Math.max(16, count), 16).asSlice(0, count);
  }

  static MemorySegment f32(float... values) {
    MemorySegment segment = bytes(4L * values.length);
    for (int i = 0; i < values.length; i++) {
      segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, values[i]);
    }
    return segment;
  }

  static MemorySegment bf16(float... values) {
    MemorySegment segment = bytes(2L * values.length);
    for (int i = 0; i < values.length; i++) {
      segment.setAtIndex(
          ValueLayout.JAVA_SHORT, i, (short) (Float.floatToRawIntBits(toBf16(values[i])) >>> 16));
    }
    return segment;
  }

  static MemorySegment ints(int... values) {
    MemorySegment segment = bytes(4L * values.length);
    MemorySegment.copy(values, 0, segment, ValueLayout.JAVA_INT, 0, values.length);
    return segment;
  }

  /** An output: every byte 0xFF, which is NaN in fp32 and bf16. */
  static MemorySegment poisoned(long bytes) {
    return bytes(bytes).fill((byte) 0xFF);
  }

  static MemorySegment poisonedF32(int count) {
    return poisoned(4L * count);
  }

  static MemorySegment poisonedBf16(int count) {
    return poisoned(2L * count);
  }

  /** Stands for a buffer that must be bound but is not used. */
  static MemorySegment unused() {
    return poisoned(16);
  }

  static float[] readF32(MemorySegment segment) {
    return segment.toArray(ValueLayout.JAVA_FLOAT);
  }

  static float[] readBf16(MemorySegment segment) {
    short[] bits = segment.toArray(ValueLayout.JAVA_SHORT);
    float[] values = new float[bits.length];
    for (int i = 0; i < bits.length; i++) {
      values[i] = Float.intBitsToFloat(bits[i] << 16);
    }
    return values;
  }

  static int[] readInts(MemorySegment segment) {
    return segment.toArray(ValueLayout.JAVA_INT);
  }

  /** A struct of 4-byte fields, for setBytes. */
  static MemorySegment struct(Object... fields) {
    MemorySegment segment = bytes(4L * fields.length);
    for (int i = 0; i < fields.length; i++) {
      switch (fields[i]) {
        case Integer value -> segment.setAtIndex(ValueLayout.JAVA_INT, i, value);
        case Float value -> segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        default -> throw new IllegalArgumentException("field " + fields[i]);
      }
    }
    return segment;
  }

  /** Each value within {@code tolerance} times its magnitude. */
  static void assertClose(float[] actual, double[] expected, double[] magnitude, double tolerance) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int i = 0; i < actual.length; i++) {
      double allowed = tolerance * Math.abs(magnitude[i]) + 1e-30;
      if (!(Math.abs(actual[i] - expected[i]) <= allowed)) {
        assertThat((double) actual[i])
            .as("value %d of %d, magnitude %s", i, actual.length, magnitude[i])
            .isCloseTo(expected[i], Offset.offset(allowed));
      }
    }
  }

  /** All values within {@code tolerance} times the largest. */
  static void assertClose(float[] actual, double[] expected, double tolerance) {
    double largest = 0;
    for (double value : expected) {
      largest = Math.max(largest, Math.abs(value));
    }
    double[] magnitude = new double[expected.length];
    Arrays.fill(magnitude, largest);
    assertClose(actual, expected, magnitude, tolerance);
  }
}
