package dev.lily.engine.backend.cpu.vector;

import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import jdk.incubator.vector.VectorShape;

/** The vector family. */
public final class VectorKernels {
  private VectorKernels() {}

  /** Whether this JVM turns vectors into vector instructions at all. */
  public static boolean isSupported() {
    return VectorShape.preferredShape().vectorBitSize() >= Lanes.MIN_BITS;
  }

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
