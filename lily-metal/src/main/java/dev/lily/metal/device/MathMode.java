package dev.lily.metal.device;

/** What the compiler may assume of floating-point numbers. */
public enum MathMode {
  /** IEEE 754: NaN and infinity count, sums keep their order. */
  SAFE(0),
  /** Sums may be reordered; NaN and infinity count. */
  RELAXED(1),
  /** The compiler assumes that NaN and infinity do not occur. Metal's own default. */
  FAST(2);

  private final long value;

  MathMode(long value) {
    this.value = value;
  }

  long value() {
    return value;
  }
}
