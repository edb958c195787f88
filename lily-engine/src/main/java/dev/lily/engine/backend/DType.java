package dev.lily.engine.backend;

/** Element types of dense weights. */
public enum DType {
  F32(4),
  BF16(2);

  private final int bytes;

  DType(int bytes) {
    this.bytes = bytes;
  }

  /** Bytes per element. */
  public int bytes() {
    return bytes;
  }
}
