package dev.lily.metal.device;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.MessageSend;
import dev.lily.metal.objc.NSString;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Memory that kernels can reach. */
public final class MetalBuffer extends DeviceObject {
  private final long byteSize;
  private final @Nullable MemorySegment contents;
  private final @Nullable HostAccess hostAccess;

  /** The processor's view of a buffer that Metal allocated; ends with the buffer. */
  private static final class HostAccess {
    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory;

    // The address and the length are those of one allocation of Metal's.
    @SuppressWarnings("restricted")
    HostAccess(long address, long byteSize) {
      this.memory = MemorySegment.ofAddress(address).reinterpret(byteSize, arena, null);
    }
  }

  private MetalBuffer(
      DeviceObjects owner,
      long owned,
      long byteSize,
      @Nullable MemorySegment contents,
      @Nullable HostAccess hostAccess) {
    super(owner, owned, "buffer of " + byteSize + " bytes");
    this.byteSize = byteSize;
    this.contents = contents;
    this.hostAccess = hostAccess;
  }

  /** Takes over a buffer that Metal allocated. */
  static MetalBuffer allocated(
      DeviceObjects owner, long owned, long byteSize, StorageMode storage) {
    if (storage == StorageMode.PRIVATE) {
      return new MetalBuffer(owner, owned, byteSize, null, null);
    }
    long address = MessageSend.sendForLong(owned, MetalSelectors.CONTENTS);
    HostAccess access = new HostAccess(address, byteSize);
    return new MetalBuffer(owner, owned, byteSize, access.memory, access);
  }

  /** Takes over a buffer that wraps the given memory. */
  static MetalBuffer wrapping(DeviceObjects owner, long owned, MemorySegment memory) {
    return new MetalBuffer(owner, owned, memory.byteSize(), memory, null);
  }

  public long byteSize() {
    return byteSize;
  }

  /**
   * The memory as the processor sees it: writes made before a commit are seen by its kernels, and
   * what kernels wrote is there once their command buffer has completed. Lives until the buffer is
   * closed.
   *
   * @throws IllegalStateException if the storage is private
   */
  public MemorySegment contents() {
    if (contents == null) {
      throw new IllegalStateException("Reading a " + this + " with private storage");
    }
    return contents;
  }

  /** Names the buffer in Apple's debugging tools. */
  public void setLabel(String label) {
    try (AutoreleasePool _ = AutoreleasePool.open();
        NSString string = NSString.of(label)) {
      MessageSend.send(id(), MetalSelectors.SET_LABEL, string.id());
    }
  }

  @Override
  public void close() {
    if (hostAccess != null && hostAccess.arena.scope().isAlive()) {
      hostAccess.arena.close();
    }
    super.close();
  }
}
