package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * The fp32 page pool. For each attention layer and KV head a page holds keys {@code [headDim,
 * tokenStride]}, so that a vector of keys is a run of tokens, then values {@code [pageTokens,
 * headDim]}. The token stride is padded to whole vectors; what lies beyond the tokens written is
 * garbage.
 */
public final class KeyValuePages {
  /** Whole vectors of this many tokens may be read from any key row. */
  public static final int TOKEN_UNIT = 32;

  private final MemoryBlocks blocks;
  private final int headDim;
  private final int pageTokens;
  private final int tokenStride;
  private final long keyBytes;
  private final long headBytes;
  private final long layerBytes;

  /**
   * Lays pages out in blocks.
   *
   * @param blocks {@code numPages} of {@code pageBytes(layout)} bytes
   */
  public KeyValuePages(MemoryBlocks blocks, StateLayout layout) {
    this.blocks = blocks;
    headDim = layout.headDim();
    pageTokens = layout.pageTokens();
    tokenStride = tokenStride(layout);
    keyBytes = (long) headDim * tokenStride * Float.BYTES;
    headBytes = keyBytes + (long) pageTokens * headDim * Float.BYTES;
    layerBytes = layout.numKeyValueHeads() * headBytes;
  }

  private static int tokenStride(StateLayout layout) {
    return (layout.pageTokens() + TOKEN_UNIT - 1) / TOKEN_UNIT * TOKEN_UNIT;
  }

  /** Bytes of one page over all layers. */
  public static long pageBytes(StateLayout layout) {
    return (long) layout.numAttentionLayers()
        * layout.numKeyValueHeads()
        * layout.headDim()
        * (tokenStride(layout) + layout.pageTokens())
        * Float.BYTES;
  }

  /** The memory of a page. */
  public MemorySegment segment(int page) {
    return blocks.get(page);
  }

  /** Makes sure that a page has memory, before {@link #put}. Engine thread only. */
  public void prepare(int page) {
    blocks.take(page);
  }

  /** Bytes of all pages. */
  public long bytes() {
    return blocks.bytes();
  }

  /** Bytes that pages have taken so far. */
  public long bytesTaken() {
    return blocks.bytesTaken();
  }

  public int headDim() {
    return headDim;
  }

  public int pageTokens() {
    return pageTokens;
  }

  /** Distance in elements between two dimensions of a key. */
  public int tokenStride() {
    return tokenStride;
  }

  /** Byte offset in a page of the keys of one layer and KV head. */
  public long keys(int layer, int head) {
    return layer * layerBytes + head * headBytes;
  }

  /** Byte offset in a page of the values of one layer and KV head. */
  public long values(int layer, int head) {
    return keys(layer, head) + keyBytes;
  }

  /** Stores the key and the value of one token. */
  public void put(
      int page,
      int layer,
      int head,
      int token,
      float[] key,
      int keyOffset,
      float[] value,
      int valueOffset) {
    MemorySegment segment = blocks.get(page);
    long at = keys(layer, head) + (long) token * Float.BYTES;
    for (int d = 0; d < headDim; d++, at += (long) tokenStride * Float.BYTES) {
      segment.set(ValueLayout.JAVA_FLOAT, at, key[keyOffset + d]);
    }
    MemorySegment.copy(
        value,
        valueOffset,
        segment,
        ValueLayout.JAVA_FLOAT,
        values(layer, head) + (long) token * headDim * Float.BYTES,
        headDim);
  }

  /** Copies a page over all layers. */
  public void copy(int from, int to) {
    blocks.copy(from, to);
  }
}
