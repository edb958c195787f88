package dev.lily.metal.kernel;

import dev.lily.metal.device.CommandQueue;
import dev.lily.metal.device.MetalBuffer;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.device.ResidencySet;
import dev.lily.metal.device.StorageMode;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Buffers of a back end, all of them kept resident where the system can. Every kernel reaches
 * shared memory: with unified memory there is no faster kind.
 */
public final class DeviceMemory {
  private static final int EXPECTED_BUFFERS = 256;
  private static final byte POISON = (byte) 0xff; // a NaN in fp32 and in bf16

  private final MetalDevice device;
  private final @Nullable ResidencySet residency;
  private boolean changed;
  private boolean requested;
  private long numReleased;

  public DeviceMemory(MetalDevice device, CommandQueue queue) {
    this.device = device;
    this.residency = device.residencySet(EXPECTED_BUFFERS).orElse(null);
    if (residency != null) {
      queue.add(residency);
    }
  }

  /** A buffer with undefined contents, of at least 16 bytes and a multiple of them. */
  public MetalBuffer allocate(long byteSize) {
    return keep(device.buffer(paddedBytes(byteSize), StorageMode.SHARED));
  }

  /** A buffer of NaNs. */
  public MetalBuffer allocatePoisoned(long byteSize) {
    MetalBuffer buffer = allocate(byteSize);
    buffer.contents().fill(POISON);
    return buffer;
  }

  /** Bytes that a buffer takes. */
  public static long paddedBytes(long byteSize) {
    return Math.max(16, (byteSize + 15) / 16 * 16);
  }

  /** A buffer over mapped memory, without a copy. */
  MetalBuffer wrap(MemorySegment memory) {
    return keep(device.wrap(memory));
  }

  boolean canWrap(MemorySegment memory) {
    return memory.isNative() && memory.address() % device.pageBytes() == 0;
  }

  private MetalBuffer keep(MetalBuffer buffer) {
    if (residency != null) {
      residency.add(buffer);
      changed = true;
    }
    return buffer;
  }

  /** Buffers given back so far: as long as it stands, what binds buffers stays usable. */
  public long numReleased() {
    return numReleased;
  }

  /** Gives a buffer back. */
  public void release(MetalBuffer buffer) {
    numReleased++;
    if (residency != null) {
      residency.remove(buffer);
      changed = true;
    }
    buffer.close();
  }

  /** Wires all buffers now, and keeps them so while the GPU idles, where the system can. */
  public void keepResident() {
    commit();
    if (residency != null) {
      residency.request();
      requested = true;
    }
  }

  /** Lets the system have the memory back. */
  public void end() {
    if (residency != null && requested) {
      residency.end();
      requested = false;
    }
  }

  /** Makes additions and removals count; to be called before work that uses them. */
  public void commit() {
    if (residency != null && changed) {
      residency.commit();
      changed = false;
    }
  }
}
