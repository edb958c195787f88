package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.BackendException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Native memory in blocks of one size, each taken from the system when it is first to be written:
 * what a plan allows for but nobody uses costs nothing.
 */
public final class MemoryBlocks {
  private static final long ALIGNMENT = 64;

  /** Every bit set is a NaN in fp32 and in bf16. */
  private static final byte NAN_BYTE = -1;

  private final Arena arena;
  private final long blockBytes;
  private final boolean isPoisoned;
  private final MemorySegment[] blocks;
  private int numTaken;

  /**
   * Takes nothing yet.
   *
   * @param arena of all blocks; shared
   * @param isPoisoned whether blocks start as NaN, so that reading what was not written shows, and
   *     not as zeros
   */
  public MemoryBlocks(Arena arena, int count, long blockBytes, boolean isPoisoned) {
    this.arena = arena;
    this.blockBytes = blockBytes;
    this.isPoisoned = isPoisoned;
    blocks = new MemorySegment[count];
    Arrays.fill(blocks, MemorySegment.NULL);
  }

  /** A block; one that was never taken has no bytes, so that reading it fails. */
  public MemorySegment get(int block) {
    return blocks[block];
  }

  /**
   * A block that is to be written. Engine thread only, before work on it is handed to others.
   *
   * @throws BackendException if the system has no memory for it
   */
  public MemorySegment take(int block) {
    if (blocks[block].byteSize() == 0) {
      blocks[block] = allocate();
      numTaken++;
    }
    return blocks[block];
  }

  private MemorySegment allocate() {
    MemorySegment segment;
    try {
      segment = arena.allocate(blockBytes, ALIGNMENT);
    } catch (OutOfMemoryError e) {
      throw new BackendException(
          "The system has no %d KiB for sequence state beside the %d MiB in use: %s. Lower the context length, the sessions or the cache, or end other programs"
              .formatted(blockBytes >> 10, bytesTaken() >> 20, e.getMessage()),
          e);
    }
    if (isPoisoned) {
      segment.fill(NAN_BYTE);
    }
    return segment;
  }

  /** Copies a block over another. */
  public void copy(int from, int to) {
    MemorySegment.copy(blocks[from], 0, take(to), 0, blockBytes);
  }

  /** Bytes of all blocks once they are taken. */
  public long bytes() {
    return blocks.length * blockBytes;
  }

  /** Bytes taken so far. */
  public long bytesTaken() {
    return numTaken * blockBytes;
  }
}
