package dev.lily.metal.device;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/**
 * Buffers and offsets for consecutive binding indices, prepared once and bound by one message. The
 * buffers must be open whenever it is used. Lives as long as the device.
 */
public final class BufferBindings {
  private final int firstIndex;
  private final MetalBuffer[] buffers;
  private final MemorySegment objects;
  private final MemorySegment offsets;

  /**
   * Binds nothing yet: every index must be {@link #set} before use.
   *
   * @param firstIndex binding index of entry 0
   */
  public BufferBindings(MetalDevice device, int firstIndex, int size) {
    ComputeEncoder.requireIndex(firstIndex);
    ComputeEncoder.requireIndex(firstIndex + size - 1);
    this.firstIndex = firstIndex;
    this.buffers = new MetalBuffer[size];
    this.objects = device.arena().allocate(JAVA_LONG, size);
    this.offsets = device.arena().allocate(JAVA_LONG, size);
  }

  /** Chooses the buffer and offset of an entry. */
  public void set(int entry, MetalBuffer buffer, long offset) {
    ComputeEncoder.requireOffset(buffer, offset, 1);
    objects.setAtIndex(JAVA_LONG, entry, buffer.id());
    offsets.setAtIndex(JAVA_LONG, entry, offset);
    buffers[entry] = buffer;
  }

  public int firstIndex() {
    return firstIndex;
  }

  public int size() {
    return buffers.length;
  }

  /** The objects, checked to be open. */
  MemorySegment objects() {
    for (int i = 0; i < buffers.length; i++) {
      if (buffers[i] == null || buffers[i].isClosed()) {
        throw new IllegalStateException(
            "Binding index " + (firstIndex + i) + ": its buffer is not set or closed");
      }
    }
    return objects;
  }

  MemorySegment offsets() {
    return offsets;
  }
}
