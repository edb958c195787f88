package dev.lily.metal.kernel;

/** Types of activations. */
public enum ElementType {
  F32(4, "f32"),
  BF16(2, "bf16");

  private final int bytes;
  private final String kernelName;

  ElementType(int bytes, String kernelName) {
    this.bytes = bytes;
    this.kernelName = kernelName;
  }

  /** Bytes of an element. */
  public int bytes() {
    return bytes;
  }

  /** As kernels' names spell it. */
  String kernelName() {
    return kernelName;
  }
}
