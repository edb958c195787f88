package dev.lily.metal.device;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.MessageSend;

/**
 * Buffers that stay wired while they are idle, so that the next command buffer need not wait for
 * them. Changes count after {@link #commit}. Remove a buffer before closing it.
 */
public final class ResidencySet extends DeviceObject {
  ResidencySet(DeviceObjects owner, long owned) {
    super(owner, owned, "residency set");
  }

  public void add(MetalBuffer buffer) {
    MessageSend.send(id(), MetalSelectors.ADD_ALLOCATION, buffer.id());
  }

  public void remove(MetalBuffer buffer) {
    MessageSend.send(id(), MetalSelectors.REMOVE_ALLOCATION, buffer.id());
  }

  /** Makes additions and removals count. */
  public void commit() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      MessageSend.send(id(), MetalSelectors.COMMIT_RESIDENCY);
    }
  }

  /** Wires the set's memory now instead of at its first use. */
  public void request() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      MessageSend.send(id(), MetalSelectors.REQUEST_RESIDENCY);
    }
  }

  /** Lets the system take the memory back. */
  public void end() {
    try (AutoreleasePool _ = AutoreleasePool.open()) {
      MessageSend.send(id(), MetalSelectors.END_RESIDENCY);
    }
  }

  /** Bytes of all buffers in the set. */
  public long allocatedBytes() {
    return MessageSend.sendForLong(id(), MetalSelectors.ALLOCATED_SIZE);
  }
}
