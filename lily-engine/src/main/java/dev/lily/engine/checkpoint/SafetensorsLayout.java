package dev.lily.engine.checkpoint;

import static dev.lily.engine.checkpoint.MessageText.quoted;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;

/**
 * Checks that declared tensors fit their dtypes and shapes and tile the data section of their file
 * exactly: no overlap, no hole, nothing missing, nothing left over.
 */
final class SafetensorsLayout {
  private static final Comparator<SafetensorsHeader.Entry> BY_PLACE =
      Comparator.comparingLong(SafetensorsHeader.Entry::begin)
          .thenComparingLong(SafetensorsHeader.Entry::end);

  private SafetensorsLayout() {}

  /**
   * Checks all entries of a file.
   *
   * @param dataBegin where the data section starts, in bytes
   * @throws CheckpointException naming the first tensor that does not fit
   */
  static void check(
      Path file, List<SafetensorsHeader.Entry> entries, long dataBegin, long fileSize) {
    List<SafetensorsHeader.Entry> byPlace = entries.stream().sorted(BY_PLACE).toList();
    long dataBytes = fileSize - dataBegin;
    requireNotTruncated(file, byPlace, dataBegin, fileSize);
    entries.forEach(entry -> requireSizeOfShape(file, entry));

    long position = 0;
    String previous = "";
    for (SafetensorsHeader.Entry entry : byPlace) {
      if (entry.begin() < position) {
        throw corrupt(
            file,
            "Tensor %s begins at data byte %d, inside tensor %s, which ends at %d"
                .formatted(quoted(entry.name()), entry.begin(), quoted(previous), position));
      }
      requireNoHole(file, position, entry.begin(), "before tensor " + quoted(entry.name()));
      position = entry.end();
      previous = entry.name();
    }
    requireNoHole(file, position, dataBytes, "at the end of the file");
  }

  private static void requireNotTruncated(
      Path file, List<SafetensorsHeader.Entry> entries, long dataBegin, long fileSize) {
    for (SafetensorsHeader.Entry entry : entries) {
      if (entry.end() > fileSize - dataBegin) {
        long needed =
            dataBegin + entries.stream().mapToLong(SafetensorsHeader.Entry::end).max().orElse(0);
        throw corrupt(
            file,
            "Tensor %s ends at data byte %d, past the data section's %d bytes: the header asks for a file size of %d bytes, the actual file size is %d"
                .formatted(
                    quoted(entry.name()), entry.end(), fileSize - dataBegin, needed, fileSize));
      }
    }
  }

  private static void requireSizeOfShape(Path file, SafetensorsHeader.Entry entry) {
    OptionalInt bits = bitsPerElement(entry.dtype());
    if (bits.isEmpty()) {
      if (UnusedTensors.contain(entry.name())) {
        return;
      }
      throw new CheckpointException(
          Kind.UNSUPPORTED,
          file,
          "Tensor %s has the unknown dtype %s; Lily reads MLX conversions (U32, BF16) and plain BF16 checkpoints"
              .formatted(quoted(entry.name()), quoted(entry.dtype())));
    }
    long totalBits;
    try {
      totalBits = bits.getAsInt();
      for (long dimension : entry.shape()) {
        totalBits = Math.multiplyExact(totalBits, dimension);
      }
    } catch (ArithmeticException e) {
      throw corrupt(
          file,
          "Tensor %s has shape %s, whose product overflows"
              .formatted(quoted(entry.name()), entry.shape()));
    }
    long bytes = entry.end() - entry.begin();
    if (totalBits % 8 != 0 || totalBits / 8 != bytes) {
      throw corrupt(
          file,
          "Tensor %s of dtype %s and shape %s takes %s bytes but data_offsets [%d, %d] span %d"
              .formatted(
                  quoted(entry.name()),
                  entry.dtype(),
                  entry.shape(),
                  totalBits % 8 == 0 ? Long.toString(totalBits / 8) : totalBits / 8.0,
                  entry.begin(),
                  entry.end(),
                  bytes));
    }
  }

  private static void requireNoHole(Path file, long from, long to, String where) {
    if (from < to) {
      throw corrupt(
          file,
          "The %d data bytes %d to %d %s belong to no tensor"
              .formatted(to - from, from, to, where));
    }
  }

  /** Bits of an element by the format's dtype names; empty if unknown. */
  private static OptionalInt bitsPerElement(String dtype) {
    return switch (dtype) {
      case "F4" -> OptionalInt.of(4);
      case "F6_E2M3", "F6_E3M2" -> OptionalInt.of(6);
      case "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ" ->
          OptionalInt.of(8);
      case "U16", "I16", "F16", "BF16" -> OptionalInt.of(16);
      case "U32", "I32", "F32" -> OptionalInt.of(32);
      case "U64", "I64", "F64", "C64" -> OptionalInt.of(64);
      default -> OptionalInt.empty();
    };
  }

  private static CheckpointException corrupt(Path file, String what) {
    return new CheckpointException(Kind.CORRUPT, file, what + ". Fetch the file again");
  }
}
