package dev.lily.engine.generation.disk;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Path;
import java.util.zip.CRC32C;

/** An entry's file, open for reading; every piece is checked as it is read. One thread. */
final class EntryReader implements AutoCloseable {
  private final SeekableByteChannel channel;
  private final EntryHeader header;
  private final int[] tokens;
  private final CRC32C checksum = new CRC32C();
  private ByteBuffer trailer = ByteBuffer.allocate(0);

  private EntryReader(SeekableByteChannel channel, EntryHeader header, int[] tokens) {
    this.channel = channel;
    this.header = header;
    this.tokens = tokens;
  }

  /**
   * Opens a file and reads what stands before its pieces.
   *
   * @throws IOException if the file is damaged or not of this key and shape
   */
  static EntryReader open(FileStore files, Path file, String key, EntryShape shape)
      throws IOException {
    SeekableByteChannel channel = files.open(file);
    try {
      long bytes = channel.size();
      EntryHeader.require(bytes >= EntryHeader.BYTES, "it has not its full length");
      ByteBuffer first = ByteBuffer.allocate(EntryHeader.BYTES);
      readAll(channel, 0, first);
      EntryHeader header = EntryHeader.decode(first.flip(), key, shape, bytes);
      ByteBuffer beginning = ByteBuffer.allocate(Math.toIntExact(header.offset(0)));
      readAll(channel, 0, beginning);
      return new EntryReader(channel, header, header.tokens(beginning));
    } catch (IOException | RuntimeException | Error e) {
      channel.close();
      throw e;
    }
  }

  EntryHeader header() {
    return header;
  }

  int[] tokens() {
    return tokens;
  }

  /**
   * Reads a piece.
   *
   * @param target of the piece's size
   * @throws IOException if it is damaged; what is in the target is then of no use
   */
  void read(int piece, MemorySegment target) throws IOException {
    int expected = trailer().getInt(piece * Integer.BYTES);
    ByteBuffer bytes = target.asByteBuffer();
    readAll(channel, header.offset(piece), bytes.duplicate());
    checksum.reset();
    checksum.update(bytes);
    EntryHeader.require((int) checksum.getValue() == expected, "its contents are damaged");
  }

  private ByteBuffer trailer() throws IOException {
    if (trailer.capacity() == 0) {
      ByteBuffer read = ByteBuffer.allocate(header.trailerBytes()).order(LITTLE_ENDIAN);
      readAll(channel, header.offset(header.numPieces()), read);
      int table = header.numPieces() * Integer.BYTES;
      checksum.reset();
      checksum.update(read.slice(0, table));
      EntryHeader.require(
          (int) checksum.getValue() == read.getInt(table), "its checksums are damaged");
      trailer = read;
    }
    return trailer;
  }

  private static void readAll(SeekableByteChannel channel, long offset, ByteBuffer target)
      throws IOException {
    channel.position(offset);
    while (target.hasRemaining()) {
      EntryHeader.require(channel.read(target) >= 0, "it has not its full length");
    }
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
