package dev.lily.metal.kernel;

/** Formats of a matrix, in the order in which the kernels number them. */
public enum WeightFormat {
  /** 4-bit codes with a scale and a bias per group of columns. */
  Q4("q4", 8),
  /** 8-bit codes with a scale and a bias per group of columns. */
  Q8("q8", 16),
  BF16("bf16", 2),
  F32("f32", 4);

  private final String kernelName;
  private final int alignment;

  WeightFormat(String kernelName, int alignment) {
    this.kernelName = kernelName;
    this.alignment = alignment;
  }

  /** As kernels' names spell it. */
  String kernelName() {
    return kernelName;
  }

  /** Bytes that codes or values must be aligned to, because kernels read them in such pieces. */
  int alignment() {
    return alignment;
  }

  boolean isAffine() {
    return this == Q4 || this == Q8;
  }
}
