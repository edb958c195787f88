package dev.lily.metal.device;

import dev.lily.metal.objc.AutoreleasePool;
import dev.lily.metal.objc.ObjcObject;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * What a device owns, and what must outlive the work in flight. Command buffers get ascending
 * serial numbers as they begin; a closed object is released once no command buffer with a serial up
 * to the closing is open. Any thread.
 */
final class DeviceObjects {
  private record Retired(long object, long lastSerial) {}

  private final Set<DeviceObject> objects = new LinkedHashSet<>();
  private final List<CommandBuffer> commandBuffers = new ArrayList<>();
  private final List<Retired> retired = new ArrayList<>();
  private long lastSerial;

  synchronized void add(DeviceObject object) {
    objects.add(object);
  }

  synchronized void remove(DeviceObject object) {
    objects.remove(object);
  }

  synchronized void add(CommandBuffer buffer) {
    commandBuffers.add(buffer);
  }

  synchronized void remove(CommandBuffer buffer) {
    commandBuffers.remove(buffer);
  }

  /** The serial of a command buffer that begins now. */
  synchronized long nextSerial() {
    return ++lastSerial;
  }

  /** The command buffer that is being recorded, if any, is another one than the given. */
  synchronized boolean isAnotherRecording(CommandBuffer buffer) {
    for (int i = 0; i < commandBuffers.size(); i++) {
      CommandBuffer other = commandBuffers.get(i);
      if (other != buffer && other.isRecording()) {
        return true;
      }
    }
    return false;
  }

  synchronized void releaseWhenIdle(long object) {
    if (oldestOpenSerial() > lastSerial) {
      try (AutoreleasePool _ = AutoreleasePool.open()) {
        ObjcObject.release(object);
      }
    } else {
      retired.add(new Retired(object, lastSerial));
    }
  }

  /** To be called when a command buffer has completed or was discarded. */
  synchronized void releaseRetired() {
    if (retired.isEmpty()) {
      return;
    }
    long oldest = oldestOpenSerial();
    for (Iterator<Retired> each = retired.iterator(); each.hasNext(); ) {
      Retired next = each.next();
      if (next.lastSerial() < oldest) {
        ObjcObject.release(next.object());
        each.remove();
      }
    }
  }

  private long oldestOpenSerial() {
    long oldest = Long.MAX_VALUE;
    for (int i = 0; i < commandBuffers.size(); i++) {
      oldest = Math.min(oldest, commandBuffers.get(i).openSerial());
    }
    return oldest;
  }

  /** Drops what is being recorded and waits for the work in flight. */
  void closeCommandBuffers() {
    for (CommandBuffer buffer : copyOf(commandBuffers)) {
      buffer.close();
    }
  }

  /** Releases everything once no command buffer is open: queues last. */
  void close() {
    List<DeviceObject> open = copyOf(objects).reversed();
    for (DeviceObject object : open) {
      if (!(object instanceof CommandQueue)) {
        object.close();
      }
    }
    for (DeviceObject object : open) {
      object.close();
    }
    releaseRetired();
  }

  private synchronized <T> List<T> copyOf(Iterable<T> source) {
    List<T> copy = new ArrayList<>();
    source.forEach(copy::add);
    return copy;
  }
}
