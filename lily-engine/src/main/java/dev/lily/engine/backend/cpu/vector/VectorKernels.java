package dev.lily.engine.backend.cpu.vector;

import dev.lily.engine.backend.cpu.kernel.CpuKernels;

/** The vector family. */
public final class VectorKernels {
  private VectorKernels() {}

  public static CpuKernels create() {
    return new CpuKernels(
        "vector %d-bit".formatted(Lanes.FLOATS.vectorBitSize()),
        new VectorMatmul(),
        new VectorNorm(),
        new VectorElementwise(),
        new VectorAttention(),
        new VectorDeltaRule());
  }
}
