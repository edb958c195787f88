package dev.lily.engine.checkpoint;

/** Conversions between fp32 and bfloat16 bit patterns. */
public final class Bf16 {
  private Bf16() {}

  /** The value of a bfloat16 bit pattern; exact. */
  public static float toFloat(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /** The nearest bfloat16, ties to even; a NaN stays a (quiet) NaN. */
  public static short fromFloat(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >>> 16) | 0x40);
    }
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }
}
