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

  private final MemorySegment segment;
  private final int headDim;
  private final int pageTokens;
  private final int tokenStride;
  private final long keyBytes;
  private final long headBytes;
  private final long layerBytes;
  private final long pageBytes;

  /**
   * Lays pages out in a segment.
   *
   * @param segment {@code numPages * pageBytes(layout)} bytes, aligned for floats
   */
  public KeyValuePages(MemorySegment segment, StateLayout layout) {
    this.segment = segment;
    headDim = layout.headDim();
    pageTokens = layout.pageTokens();
    tokenStride = tokenStride(layout);
    keyBytes = (long) headDim * tokenStride * Float.BYTES;
    headBytes = keyBytes + (long) pageTokens * headDim * Float.BYTES;
    layerBytes = layout.numKeyValueHeads() * headBytes;
    pageBytes = pageBytes(layout);
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

  public MemorySegment segment() {
    return segment;
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

  /** Byte offset of a page's keys of one layer and KV head. */
  public long keys(int page, int layer, int head) {
    return page * pageBytes + layer * layerBytes + head * headBytes;
  }

  /** Byte offset of a page's values of one layer and KV head. */
  public long values(int page, int layer, int head) {
    return keys(page, layer, head) + keyBytes;
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
    long at = keys(page, layer, head) + (long) token * Float.BYTES;
    for (int d = 0; d < headDim; d++, at += (long) tokenStride * Float.BYTES) {
      segment.set(ValueLayout.JAVA_FLOAT, at, key[keyOffset + d]);
    }
    MemorySegment.copy(
        value,
        valueOffset,
        segment,
        ValueLayout.JAVA_FLOAT,
        values(page, layer, head) + (long) token * headDim * Float.BYTES,
        headDim);
  }

  /** Copies a page over all layers. */
  public void copy(int from, int to) {
    MemorySegment.copy(segment, from * pageBytes, segment, to * pageBytes, pageBytes);
  }
}
