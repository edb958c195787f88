package dev.lily.metal.kernel;

import dev.lily.metal.device.MetalBuffer;

/**
 * Memory that kernels write: one buffer, whose uses within a pass are followed, so that {@link
 * KernelEncoder} knows where a barrier is due. Belongs to one back end.
 */
public final class Region {
  private final MetalBuffer buffer;
  private final boolean isDivided;

  // Stretches of the encoder between two barriers in which each part was last used.
  private long prefillRead;
  private long prefillWrite;
  private long decodeRead;
  private long decodeWrite;

  /** Memory in which prefill and decode rows have places of their own. */
  public Region(MetalBuffer buffer) {
    this(buffer, true);
  }

  private Region(MetalBuffer buffer, boolean isDivided) {
    this.buffer = buffer;
    this.isDivided = isDivided;
  }

  /** Memory that the rows of both paths use one after the other. */
  static Region undivided(MetalBuffer buffer) {
    return new Region(buffer, false);
  }

  public MetalBuffer buffer() {
    return buffer;
  }

  private boolean usesPrefill(RowPart part) {
    return !isDivided || part.hasPrefill();
  }

  private boolean usesDecode(RowPart part) {
    return !isDivided || part.hasDecode();
  }

  /** Whether it was written since the last barrier. */
  boolean isWritten(RowPart part, long stretch) {
    return (usesPrefill(part) && prefillWrite == stretch)
        || (usesDecode(part) && decodeWrite == stretch);
  }

  /** Whether it was read since the last barrier. */
  boolean isRead(RowPart part, long stretch) {
    return (usesPrefill(part) && prefillRead == stretch)
        || (usesDecode(part) && decodeRead == stretch);
  }

  void noteRead(RowPart part, long stretch) {
    prefillRead = usesPrefill(part) ? stretch : prefillRead;
    decodeRead = usesDecode(part) ? stretch : decodeRead;
  }

  void noteWrite(RowPart part, long stretch) {
    prefillWrite = usesPrefill(part) ? stretch : prefillWrite;
    decodeWrite = usesDecode(part) ? stretch : decodeWrite;
  }
}
