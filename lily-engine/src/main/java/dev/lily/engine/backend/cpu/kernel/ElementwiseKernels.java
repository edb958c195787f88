package dev.lily.engine.backend.cpu.kernel;

/** Activations and weighted sums over ranges of elements. */
public interface ElementwiseKernels {
  /** {@code gate = silu(gate) · up} for {@code count} elements from {@code offset} of both. */
  void swiglu(float[] gate, float[] up, int offset, int count);

  /** {@code target = weight · source}. */
  void scale(
      float[] source, int sourceOffset, float weight, float[] target, int targetOffset, int count);

  /** {@code target = fma(weight, source, target)}. */
  void addScaled(
      float[] source, int sourceOffset, float weight, float[] target, int targetOffset, int count);
}
