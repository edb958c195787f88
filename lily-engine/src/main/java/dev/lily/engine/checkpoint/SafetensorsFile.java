package dev.lily.engine.checkpoint;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

/**
 * One safetensors file, mapped whole and read-only. It is mapped only after its header has passed
 * every check; nothing is allocated by a length the file merely claims.
 *
 * @param path the file
 * @param mapping all bytes of the file; lives as long as the arena given to {@link #open}
 * @param tensors in header order
 */
record SafetensorsFile(Path path, MemorySegment mapping, List<TensorEntry> tensors) {
  private static final int LENGTH_BYTES = 8;

  /** The limit of the format's reference implementation. */
  private static final long MAX_HEADER_BYTES = 100_000_000;

  SafetensorsFile {
    tensors = List.copyOf(tensors);
  }

  /**
   * Checks and maps a file.
   *
   * @param arena shared arena; its owner closes it, also after an exception
   */
  static SafetensorsFile open(Path path, Arena arena) {
    RegularFile.require(path);
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      long fileSize = channel.size();
      long dataBegin = LENGTH_BYTES + readHeaderLength(path, channel, fileSize);
      List<SafetensorsHeader.Entry> entries =
          SafetensorsHeader.read(path, new ChannelRegion(channel, LENGTH_BYTES, dataBegin));
      SafetensorsLayout.check(path, entries, dataBegin, fileSize);
      MemorySegment mapping = channel.map(MapMode.READ_ONLY, 0, fileSize, arena);
      List<TensorEntry> tensors =
          entries.stream()
              .map(
                  entry ->
                      new TensorEntry(
                          entry.name(),
                          entry.dtype(),
                          entry.shape(),
                          mapping.asSlice(dataBegin + entry.begin(), entry.end() - entry.begin()),
                          path))
              .toList();
      return new SafetensorsFile(path, mapping, tensors);
    } catch (IOException e) {
      throw new CheckpointException(
          Kind.NOT_FOUND, path, "The file cannot be read or mapped (%s)".formatted(e), e);
    }
  }

  private static long readHeaderLength(Path path, FileChannel channel, long fileSize)
      throws IOException {
    byte[] head = new ChannelRegion(channel, 0, ForeignContent.HEAD_BYTES).readAllBytes();
    if (head.length < LENGTH_BYTES) {
      throw corrupt(
          path,
          "The file size is %d bytes; a safetensors file begins with an %d-byte header length."
                  .formatted(fileSize, LENGTH_BYTES)
              + " The file is incomplete: fetch it again");
    }
    long length = ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getLong();
    if (length <= 0 || length > MAX_HEADER_BYTES) {
      throw corrupt(
          path,
          ForeignContent.describe(head)
              .orElseGet(
                  () ->
                      "The header length %s is not within 1 and %d%s. This is no safetensors file: fetch it again"
                          .formatted(
                              Long.toUnsignedString(length), MAX_HEADER_BYTES, beginningOf(head))));
    }
    if (length > fileSize - LENGTH_BYTES) {
      throw corrupt(
          path,
          "The header of %d bytes does not fit into the file size of %d bytes. The file is incomplete: fetch it again"
              .formatted(length, fileSize));
    }
    if (head.length > LENGTH_BYTES && head[LENGTH_BYTES] != '{') {
      throw corrupt(
          path,
          "The header is not a JSON object: it does not begin with '{'. Fetch the file again");
    }
    return length;
  }

  /** The first characters where they are text, for instance an error message saved as a file. */
  private static String beginningOf(byte[] head) {
    for (int i = 0; i < LENGTH_BYTES; i++) {
      if (head[i] < ' ' || head[i] > '~') {
        return "";
      }
    }
    return "; the file begins with the text "
        + MessageText.quoted(new String(head, StandardCharsets.ISO_8859_1));
  }

  private static CheckpointException corrupt(Path path, String message) {
    return new CheckpointException(Kind.CORRUPT, path, message);
  }
}
