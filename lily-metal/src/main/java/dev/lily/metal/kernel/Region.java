package dev.lily.metal.kernel;

import dev.lily.metal.device.MetalBuffer;

/**
 * Memory that kernels write: one buffer, whose uses within a pass are followed as a whole, so that
 * {@link KernelEncoder} knows where a barrier is due. Belongs to one back end.
 */
public final class Region {
  private final MetalBuffer buffer;

  /** Stretches of the encoder between two barriers in which it was last used. */
  long lastRead;

  long lastWrite;

  public Region(MetalBuffer buffer) {
    this.buffer = buffer;
  }

  public MetalBuffer buffer() {
    return buffer;
  }
}
