package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.ChainReader;
import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.generation.disk.EntryShape;
import dev.lily.engine.model.SequenceState.Snapshot;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * A snapshot on its way from the disk: pieces are read and checked on the worker's thread, and
 * copied to the device here. Engine thread only.
 */
final class SnapshotLoad {
  private record Piece(int number, MemorySegment bytes, MemorySegment buffer) {}

  private final DiskEntry entry;
  private final int[] tokens;
  private final Snapshot target;
  private final int firstPage;
  private final long pass;
  private final ChainReader reader;
  private final EntryShape shape;
  private final DiskWorker worker;
  private final ConcurrentLinkedQueue<Piece> read = new ConcurrentLinkedQueue<>();
  private final int numPages;
  private volatile boolean abandoned;
  private int asked;
  private int copied;

  /**
   * @param tokens those the entry's state has seen
   * @param target blank but for its first pages
   * @param firstPage the first page to be read
   * @param pass passes submitted before the target was made
   */
  SnapshotLoad(
      DiskEntry entry,
      int[] tokens,
      Snapshot target,
      int firstPage,
      long pass,
      ChainReader reader,
      EntryShape shape,
      DiskWorker worker) {
    this.entry = entry;
    this.tokens = tokens;
    this.target = target;
    this.firstPage = firstPage;
    this.pass = pass;
    this.reader = reader;
    this.shape = shape;
    this.worker = worker;
    numPages = shape.pages(entry.position()) - firstPage;
  }

  DiskEntry entry() {
    return entry;
  }

  int[] tokens() {
    return tokens;
  }

  /** The snapshot, whole once {@link #isDone}. */
  Snapshot target() {
    return target;
  }

  ChainReader reader() {
    return reader;
  }

  boolean isDone() {
    return copied == numPages + shape.slices();
  }

  /** Whether nothing that was read is left to be copied. */
  boolean waitsForDisk() {
    return !isDone() && read.isEmpty();
  }

  /**
   * Copies what was read, and asks for what buffers are free for.
   *
   * @param most bytes to copy
   * @return whether there was something
   */
  boolean step(Passes passes, long most) {
    boolean moved = false;
    long bytes = 0;
    while (bytes < most && passes.areOver(pass)) {
      Piece piece = read.poll();
      if (piece == null) {
        break;
      }
      try {
        write(piece);
      } finally {
        worker.giveBack(piece.buffer);
      }
      copied++;
      bytes += piece.bytes.byteSize();
      moved = true;
    }
    while (asked < numPages + shape.slices() && reader.failure() == null) {
      MemorySegment buffer = worker.takeBuffer();
      if (buffer == null) {
        break;
      }
      int number = asked++;
      worker.submit(() -> read(new Piece(number, buffer.asSlice(0, bytes(number)), buffer)));
      moved = true;
    }
    return moved;
  }

  private long bytes(int piece) {
    return piece < numPages ? shape.pageBytes() : shape.sliceBytes(piece - numPages);
  }

  private void write(Piece piece) {
    if (piece.number < numPages) {
      target.writePage(firstPage + piece.number, piece.bytes);
    } else {
      target.writeSlot(shape.sliceOffset(piece.number - numPages), piece.bytes);
    }
  }

  /** On the worker's thread. */
  private void read(Piece piece) {
    boolean isRight = false;
    try {
      isRight =
          !abandoned
              && (piece.number < numPages
                  ? reader.readPage(firstPage + piece.number, piece.bytes)
                  : reader.readSlice(piece.number - numPages, piece.bytes));
    } finally {
      if (isRight) {
        read.add(piece);
      } else {
        worker.giveBack(piece.buffer);
      }
    }
    if (abandoned) {
      giveBack();
    }
  }

  private void giveBack() {
    for (Piece piece = read.poll(); piece != null; piece = read.poll()) {
      worker.giveBack(piece.buffer);
    }
  }

  /** Closes the files. */
  void end() {
    worker.submit(reader::close);
  }

  /** Gives the snapshot up. */
  void abandon() {
    abandoned = true;
    giveBack();
    target.close();
    end();
  }
}
