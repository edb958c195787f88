package dev.lily.engine.backend.cpu.scalar;

import dev.lily.engine.backend.cpu.kernel.CpuKernels;

/** The scalar family. */
public final class ScalarKernels {
  private ScalarKernels() {}

  public static CpuKernels create() {
    return new CpuKernels(
        "scalar",
        new ScalarMatmul(),
        new ScalarNorm(),
        new ScalarElementwise(),
        new ScalarAttention(),
        new ScalarDeltaRule());
  }

  static float sigmoid(float x) {
    return (float) (1 / (1 + Math.exp(-x)));
  }

  static float silu(float x) {
    return (float) (x / (1 + Math.exp(-x)));
  }
}
