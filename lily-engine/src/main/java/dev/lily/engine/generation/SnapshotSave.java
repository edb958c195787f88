package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.generation.disk.EntryShape;
import dev.lily.engine.generation.disk.EntryWriter;
import dev.lily.engine.model.SequenceState.Snapshot;
import java.lang.foreign.MemorySegment;

/**
 * A snapshot on its way to the disk: pieces are copied here as buffers become free, and written on
 * the worker's thread. Engine thread only.
 */
final class SnapshotSave {
  private final Snapshot snapshot;
  private final int[] tokens;
  private final DiskEntry entry;
  private final EntryWriter writer;
  private final EntryShape shape;
  private final DiskWorker worker;
  private int copied;

  SnapshotSave(
      Snapshot snapshot,
      int[] tokens,
      DiskEntry entry,
      EntryWriter writer,
      EntryShape shape,
      DiskWorker worker) {
    this.snapshot = snapshot;
    this.tokens = tokens;
    this.entry = entry;
    this.writer = writer;
    this.shape = shape;
    this.worker = worker;
  }

  Snapshot snapshot() {
    return snapshot;
  }

  int[] tokens() {
    return tokens;
  }

  DiskEntry entry() {
    return entry;
  }

  EntryWriter writer() {
    return writer;
  }

  /** Whether the snapshot is needed no more. */
  boolean isCopied() {
    return copied == writer.numPieces();
  }

  /**
   * Copies what buffers are free for.
   *
   * @param most bytes
   * @return whether there was something
   */
  boolean step(long most) {
    int before = copied;
    long bytes = 0;
    while (!isCopied() && bytes < most && writer.failure() == null) {
      MemorySegment buffer = worker.takeBuffer();
      if (buffer == null) {
        break;
      }
      MemorySegment piece = buffer.asSlice(0, writer.pieceBytes(copied));
      try {
        read(copied, piece);
      } catch (Throwable e) {
        worker.giveBack(buffer);
        throw e;
      }
      copied++;
      bytes += piece.byteSize();
      worker.submit(() -> write(piece, buffer));
    }
    if (copied > before && isCopied()) {
      worker.submit(writer::finish);
    }
    return copied > before;
  }

  private void read(int piece, MemorySegment target) {
    int pages = writer.numPages();
    if (piece < pages) {
      snapshot.readPage(writer.firstPage() + piece, target);
    } else {
      snapshot.readSlot(shape.sliceOffset(piece - pages), target);
    }
  }

  private void write(MemorySegment piece, MemorySegment buffer) {
    try {
      writer.write(piece);
    } finally {
      worker.giveBack(buffer);
    }
  }

  /** Leaves nothing behind on the disk. */
  void abandon() {
    worker.submit(writer::abandon);
  }
}
