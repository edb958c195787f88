package dev.lily.engine.generation.disk;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.zip.CRC32C;

/**
 * What a file says of itself. A file is 128 bytes of header, the tokens from the first on, pieces,
 * and a checksum of each piece; numbers are little-endian. The pages before {@code firstPage} are
 * in the file of the parent, whose tokens are the first of this one's.
 *
 * @param key of model, back end and format, 64 hexadecimal digits
 * @param id the file's own, 32 hexadecimal digits
 * @param parent id of the entry with the pages before; {@link #NONE} if there are none
 * @param firstPage the first page in this file
 * @param position tokens the state has seen
 * @param shape how the pieces are cut
 */
record EntryHeader(
    String key, String id, String parent, int firstPage, int position, EntryShape shape) {
  static final int BYTES = 128;
  static final int VERSION = 1;
  static final String NONE = "0".repeat(32);

  private static final long MAGIC = 0x0a58_4650_594c_494cL; // LILYPFX and a line break

  /** More than any model's context: what a damaged header can have set aside for tokens. */
  private static final int MOST_TOKENS = 1 << 23;

  private static final int CHECKSUM_AT = BYTES - Integer.BYTES;
  private static final HexFormat HEX = HexFormat.of();

  /** Pages in this file. */
  int numPages() {
    return shape.pages(position) - firstPage;
  }

  int numPieces() {
    return numPages() + shape.slices();
  }

  /** Where a piece begins. */
  long offset(int piece) {
    long pages = Math.min(piece, numPages());
    long slices = piece - pages;
    return BYTES
        + (long) position * Integer.BYTES
        + pages * shape.pageBytes()
        + Math.min(slices * EntryShape.SLICE_BYTES, shape.slotBytes());
  }

  long pieceBytes(int piece) {
    return piece < numPages() ? shape.pageBytes() : shape.sliceBytes(piece - numPages());
  }

  /** Bytes of the checksums behind the pieces, with the checksum of themselves. */
  int trailerBytes() {
    return (numPieces() + 1) * Integer.BYTES;
  }

  long fileBytes() {
    return offset(numPieces()) + trailerBytes();
  }

  /** The beginning of the file: header and tokens. */
  ByteBuffer encode(int[] tokens) {
    ByteBuffer buffer = ByteBuffer.allocate(BYTES + position * Integer.BYTES);
    buffer.order(ByteOrder.LITTLE_ENDIAN);
    buffer.putLong(MAGIC).putInt(VERSION).putInt(position).putInt(firstPage);
    buffer.putInt(shape.pageTokens()).putLong(shape.pageBytes()).putLong(shape.slotBytes());
    buffer.put(HEX.parseHex(key)).put(HEX.parseHex(id)).put(HEX.parseHex(parent));
    buffer.position(BYTES);
    for (int i = 0; i < position; i++) {
      buffer.putInt(tokens[i]);
    }
    buffer.putInt(CHECKSUM_AT, checksum(buffer));
    return buffer.flip();
  }

  /** Of everything in front of the pieces but itself. */
  private static int checksum(ByteBuffer beginning) {
    CRC32C checksum = new CRC32C();
    checksum.update(beginning.slice(0, CHECKSUM_AT));
    checksum.update(beginning.slice(BYTES, beginning.capacity() - BYTES));
    return (int) checksum.getValue();
  }

  /**
   * Reads a header. Nothing in it is trusted yet but that it fits the file's size.
   *
   * @param buffer the first 128 bytes of a file
   * @param fileBytes of the file
   * @throws IOException saying what is wrong
   */
  static EntryHeader decode(ByteBuffer buffer, String key, EntryShape shape, long fileBytes)
      throws IOException {
    buffer.order(ByteOrder.LITTLE_ENDIAN);
    require(buffer.getLong() == MAGIC, "it is no file of the prefix cache");
    require(buffer.getInt() == VERSION, "it is of another version");
    int position = buffer.getInt();
    int firstPage = buffer.getInt();
    boolean sameShape =
        buffer.getInt() == shape.pageTokens()
            && buffer.getLong() == shape.pageBytes()
            && buffer.getLong() == shape.slotBytes();
    byte[] bytes = new byte[32];
    buffer.get(bytes);
    require(sameShape && HEX.formatHex(bytes).equals(key), "it is of another model or format");
    buffer.get(bytes);
    String id = HEX.formatHex(bytes, 0, 16);
    String parent = HEX.formatHex(bytes, 16, 32);
    require(
        position > 0
            && position <= MOST_TOKENS
            && firstPage >= 0
            && firstPage <= position / shape.pageTokens()
            && (firstPage > 0) == !parent.equals(NONE),
        "its header is damaged");
    EntryHeader header = new EntryHeader(key, id, parent, firstPage, position, shape);
    require(header.fileBytes() == fileBytes, "it has not its full length");
    return header;
  }

  /**
   * Takes the tokens from the beginning of a file, which are then known to be those written.
   *
   * @param beginning header and tokens, whole
   * @throws IOException if the checksum differs
   */
  int[] tokens(ByteBuffer beginning) throws IOException {
    beginning.order(ByteOrder.LITTLE_ENDIAN);
    require(beginning.getInt(CHECKSUM_AT) == checksum(beginning), "its header is damaged");
    int[] tokens = new int[position];
    beginning
        .slice(BYTES, position * Integer.BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .asIntBuffer()
        .get(tokens);
    return tokens;
  }

  static void require(boolean right, String otherwise) throws IOException {
    if (!right) {
      throw new IOException(otherwise);
    }
  }
}
