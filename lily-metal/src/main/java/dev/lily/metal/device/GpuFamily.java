package dev.lily.metal.device;

/** Metal's feature families, as {@code supportsFamily:} counts them. */
public enum GpuFamily {
  /** M1. */
  APPLE7(1007),
  /** M2. */
  APPLE8(1008),
  /** M3 and M4. */
  APPLE9(1009),
  /** M5: matrix hardware for tensor operations. */
  APPLE10(1010),
  METAL3(5001),
  /** macOS 26: tensors in the language. */
  METAL4(5002);

  private final long value;

  GpuFamily(long value) {
    this.value = value;
  }

  long value() {
    return value;
  }
}
