package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.MemorySegment;

/**
 * The page pool. For each attention layer and KV head a page holds keys {@code [headDim,
 * tokenStride]}, so that a vector of keys is a run of tokens, then values {@code [pageTokens,
 * headDim]}, as elements of the page's type; how the elements of a row are ordered and what stands
 * beside them is the type's own. The token stride is padded to whole vectors; what lies beyond the
 * tokens written is garbage.
 *
 * <p>Different tokens may be written by different threads at the same time.
 */
public abstract sealed class KeyValuePages permits Fp32Pages, Bf16Pages, Int8Pages {
  /** Whole vectors of this many tokens may be read from any key row. */
  public static final int TOKEN_UNIT = 32;

  private static final int ALIGNMENT = 64;

  private final MemoryBlocks blocks;
  private final int headDim;
  private final int pageTokens;
  private final int tokenStride;
  private final long headBytes;
  private final long layerBytes;

  KeyValuePages(MemoryBlocks blocks, StateLayout layout) {
    this.blocks = blocks;
    headDim = layout.headDim();
    pageTokens = layout.pageTokens();
    tokenStride = tokenStride(layout);
    headBytes = headBytes(layout);
    layerBytes = layout.numKeyValueHeads() * headBytes;
  }

  /**
   * Lays pages out in blocks.
   *
   * @param blocks {@code numPages} of {@code pageBytes(layout)} bytes
   */
  public static KeyValuePages of(MemoryBlocks blocks, StateLayout layout) {
    return switch (layout.keyValueType()) {
      case FP32 -> new Fp32Pages(blocks, layout);
      case BF16 -> new Bf16Pages(blocks, layout);
      case INT8 -> new Int8Pages(blocks, layout);
    };
  }

  /** Bytes of one page over all layers. */
  public static long pageBytes(StateLayout layout) {
    return (long) layout.numAttentionLayers() * layout.numKeyValueHeads() * headBytes(layout);
  }

  private static long headBytes(StateLayout layout) {
    long elements = (long) layout.headDim() * (tokenStride(layout) + layout.pageTokens());
    long bytes =
        switch (layout.keyValueType()) {
          case FP32 -> elements * Float.BYTES;
          case BF16 -> elements * Short.BYTES;
          case INT8 -> elements + 2L * tokenStride(layout) * Float.BYTES;
        };
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  private static int tokenStride(StateLayout layout) {
    return (layout.pageTokens() + TOKEN_UNIT - 1) / TOKEN_UNIT * TOKEN_UNIT;
  }

  public abstract KeyValueType type();

  /** The memory of a page. */
  public final MemorySegment segment(int page) {
    return blocks.get(page);
  }

  /** Makes sure that a page has memory, before {@link #put}. Engine thread only. */
  public final void prepare(int page) {
    blocks.take(page);
  }

  /** Bytes of all pages. */
  public long bytes() {
    return blocks.bytes();
  }

  /** Bytes that pages have taken so far. */
  public final long bytesTaken() {
    return blocks.bytesTaken();
  }

  public final int headDim() {
    return headDim;
  }

  public final int pageTokens() {
    return pageTokens;
  }

  /** Distance in elements between two dimensions of a key. */
  public final int tokenStride() {
    return tokenStride;
  }

  /** Byte offset in a page of what it holds of one layer and KV head: the keys come first. */
  public final long keys(int layer, int head) {
    return layer * layerBytes + head * headBytes;
  }

  /** Byte offset in a page of the values of one layer and KV head. */
  public abstract long values(int layer, int head);

  /** Stores the key and the value of one token. */
  public abstract void put(
      int page,
      int layer,
      int head,
      int token,
      float[] key,
      int keyOffset,
      float[] value,
      int valueOffset);

  /**
   * The key of one token of a page as the pages keep it.
   *
   * @param key receives {@code headDim} elements
   */
  public abstract void key(int page, int layer, int head, int token, float[] key);

  /**
   * The value of one token of a page as the pages keep it.
   *
   * @param value receives {@code headDim} elements
   */
  public abstract void value(int page, int layer, int head, int token, float[] value);

  /** Copies a page over all layers. */
  public final void copy(int from, int to) {
    blocks.copy(from, to);
  }
}
