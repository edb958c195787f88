package dev.lily.metal.device;

/** Versions of the Metal Shading Language. */
public enum LanguageVersion {
  /** macOS 14. */
  MSL_3_1(3, 1),
  /** macOS 15. */
  MSL_3_2(3, 2),
  /** macOS 26. */
  MSL_4_0(4, 0);

  private final long value;

  LanguageVersion(int major, int minor) {
    this.value = ((long) major << 16) + minor;
  }

  long value() {
    return value;
  }
}
