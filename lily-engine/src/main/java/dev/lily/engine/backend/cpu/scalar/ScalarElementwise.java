package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.ElementwiseKernels;

/** Element by element. */
final class ScalarElementwise implements ElementwiseKernels {
  @Override
  public void swiglu(float[] gate, float[] up, int offset, int count) {
    for (int i = offset; i < offset + count; i++) {
      gate[i] = ScalarKernels.silu(gate[i]) * up[i];
    }
  }

  @Override
  public void scale(
      float[] source, int sourceOffset, float weight, float[] target, int targetOffset, int count) {
    for (int i = 0; i < count; i++) {
      target[targetOffset + i] = weight * source[sourceOffset + i];
    }
  }

  @Override
  public void addScaled(
      float[] source, int sourceOffset, float weight, float[] target, int targetOffset, int count) {
    for (int i = 0; i < count; i++) {
      target[targetOffset + i] =
          Math.fma(weight, source[sourceOffset + i], target[targetOffset + i]);
    }
  }
}
