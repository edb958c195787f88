package dev.lily.engine.generation.disk;

/**
 * How a state's bytes are cut into pieces: KV pages, then the recurrent slot in slices. Pieces are
 * what is moved and checked at a time.
 *
 * @param pageTokens tokens of a page
 * @param pageBytes bytes of a page
 * @param slotBytes bytes of the recurrent slot
 */
public record EntryShape(int pageTokens, long pageBytes, long slotBytes) {
  /** Most bytes of a slice. */
  static final int SLICE_BYTES = 1 << 20;

  /** A page is moved at once, and so must be an array's size at most. */
  private static final long MOST_BYTES = 1L << 40;

  public EntryShape {
    if (pageTokens < 1 || pageBytes < 1 || pageBytes > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "A page of %d tokens and %d bytes cannot be written to a file"
              .formatted(pageTokens, pageBytes));
    }
    if (slotBytes < 1 || slotBytes > MOST_BYTES) {
      throw new IllegalArgumentException(
          "A slot of %d bytes cannot be written to a file".formatted(slotBytes));
    }
  }

  /** Pages that hold so many tokens. */
  public int pages(int tokens) {
    return Math.ceilDiv(tokens, pageTokens);
  }

  /** Slices of a slot. */
  public int slices() {
    return Math.toIntExact(Math.ceilDiv(slotBytes, SLICE_BYTES));
  }

  /** Bytes of a slice. */
  public long sliceBytes(int slice) {
    return Math.min(SLICE_BYTES, slotBytes - sliceOffset(slice));
  }

  /** Where a slice begins in the slot. */
  public long sliceOffset(int slice) {
    return (long) slice * SLICE_BYTES;
  }

  /** Bytes of the largest piece. */
  long pieceBytes() {
    return Math.max(pageBytes, Math.min(slotBytes, SLICE_BYTES));
  }
}
