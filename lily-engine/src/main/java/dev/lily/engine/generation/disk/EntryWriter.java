package dev.lily.engine.generation.disk;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Path;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/**
 * Writes one entry, piece by piece, under a temporary name that becomes the right one in the end: a
 * file with the right name is whole. Used by one thread, but for {@link #failure} and {@link
 * #isFinished}.
 */
public final class EntryWriter {
  /** What the tier leaves free for others. */
  static final long RESERVE_BYTES = 1L << 30;

  private final FileStore files;
  private final Path directory;
  private final Path temporary;
  private final Path file;
  private final EntryHeader header;
  private final int[] tokens;
  private final ByteBuffer trailer;
  private final CRC32C checksum = new CRC32C();
  private @Nullable SeekableByteChannel channel;
  private volatile @Nullable Exception failure;
  private volatile boolean finished;
  private boolean abandoned;

  EntryWriter(FileStore files, Path directory, Path file, EntryHeader header, int[] tokens) {
    this.files = files;
    this.directory = directory;
    temporary = directory.resolve(header.id() + ".tmp");
    this.file = file;
    this.header = header;
    this.tokens = tokens;
    trailer = ByteBuffer.allocate(header.trailerBytes()).order(LITTLE_ENDIAN);
  }

  /** Pages to be written, then slices. */
  public int numPieces() {
    return header.numPieces();
  }

  /** Which page of the sequence the first piece is. */
  public int firstPage() {
    return header.firstPage();
  }

  public int numPages() {
    return header.numPages();
  }

  public long pieceBytes(int piece) {
    return header.pieceBytes(piece);
  }

  /** Why the entry could not be written; {@code null} as long as it can. Any thread. */
  public @Nullable Exception failure() {
    return failure;
  }

  /** Whether the file is there. Any thread. */
  public boolean isFinished() {
    return finished;
  }

  /** Writes the next piece. Nothing is thrown: see {@link #failure}. */
  public void write(MemorySegment piece) {
    run(
        () -> {
          if (channel == null) {
            channel = begin();
          }
          ByteBuffer bytes = piece.asByteBuffer();
          checksum.reset();
          checksum.update(bytes.duplicate());
          trailer.putInt((int) checksum.getValue());
          writeAll(channel, bytes);
        });
  }

  private SeekableByteChannel begin() throws IOException {
    long usable = files.usableBytes(directory);
    EntryHeader.require(
        usable - header.fileBytes() >= RESERVE_BYTES,
        "only %d MiB are free on the disk, and 1 GiB is left to others".formatted(usable >> 20));
    SeekableByteChannel opened = files.create(temporary);
    channel = opened;
    writeAll(opened, header.encode(tokens));
    return opened;
  }

  /** Gives the file its name. Nothing is thrown: see {@link #failure}. */
  public void finish() {
    run(
        () -> {
          SeekableByteChannel open = channel;
          if (open == null) {
            throw new IllegalStateException("An entry has no pieces");
          }
          checksum.reset();
          checksum.update(trailer.duplicate().flip());
          trailer.putInt((int) checksum.getValue());
          writeAll(open, trailer.flip());
          files.force(open);
          channel = null;
          open.close();
          files.rename(temporary, file);
          finished = true;
        });
  }

  private static void writeAll(SeekableByteChannel channel, ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  private interface Step {
    void run() throws IOException;
  }

  private void run(Step step) {
    if (failure != null || abandoned) {
      return;
    }
    try {
      step.run();
    } catch (IOException | RuntimeException e) {
      failure = e;
      abandon();
    }
  }

  /** Leaves nothing behind of an entry that is not finished. */
  public void abandon() {
    if (abandoned || finished) {
      return;
    }
    abandoned = true;
    try {
      if (channel != null) {
        channel.close();
      }
      files.delete(temporary);
    } catch (IOException | RuntimeException e) {
      if (failure == null) {
        failure = e;
      }
    }
  }
}
