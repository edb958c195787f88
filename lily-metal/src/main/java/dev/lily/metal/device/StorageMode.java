package dev.lily.metal.device;

/** Who can reach a buffer's memory. */
public enum StorageMode {
  /** Processor and GPU. */
  SHARED(0),
  /** The GPU alone. */
  PRIVATE(0x20);

  private final long options;

  StorageMode(long options) {
    this.options = options;
  }

  /** {@code MTLResourceOptions}, with hazards tracked between encoders. */
  long options() {
    return options;
  }
}
