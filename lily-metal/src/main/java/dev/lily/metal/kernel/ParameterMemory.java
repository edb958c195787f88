package dev.lily.metal.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.lily.metal.device.MetalBuffer;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Parameter structs of dispatches in memory that the GPU reads, so that no message has to carry
 * them. Written while no pass that uses it is in flight; allocates only to grow.
 */
final class ParameterMemory {
  /** What an argument in the constant address space must be aligned to on every Mac. */
  private static final int ALIGNMENT = 256;

  static final int CHUNK_BYTES = 64 * 1024;

  private final DeviceMemory memory;
  private final List<MetalBuffer> chunks = new ArrayList<>();
  private int chunk;
  private int start;
  private int end;

  ParameterMemory(DeviceMemory memory) {
    this.memory = memory;
    chunks.add(memory.allocate(CHUNK_BYTES));
  }

  /** Forgets all structs. */
  void clear() {
    chunk = 0;
    start = 0;
    end = 0;
  }

  /** Begins a struct; one that was not taken is forgotten. */
  void begin() {
    end = start;
  }

  /** Appends a field. */
  void field(int value) {
    contents().set(JAVA_INT, end, value);
    end += Integer.BYTES;
  }

  private MemorySegment contents() {
    return chunks.get(chunk).contents();
  }

  /** The buffer that holds the struct. */
  MetalBuffer buffer() {
    return chunks.get(chunk);
  }

  /** Takes the struct; gives its offset. The buffer is to be asked for first. */
  int take() {
    int taken = start;
    start = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (start == CHUNK_BYTES) {
      nextChunk();
    }
    end = start;
    return taken;
  }

  private void nextChunk() {
    chunk++;
    start = 0;
    if (chunk == chunks.size()) {
      chunks.add(memory.allocate(CHUNK_BYTES));
      memory.commit();
    }
  }

  /** Gives the memory back. */
  void release() {
    chunks.forEach(memory::release);
    chunks.clear();
  }
}
