package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.PageTable;

/**
 * One query row against a run of positions of its sequence, for the query heads that share a KV
 * head. A mutable holder that belongs to one thread.
 */
public final class AttentionSpan {
  private final float[] scores;
  private final int maxTokens;
  private final float[] row;
  private PageTable pages = new PageTable();
  private float[] query = new float[0];
  private int layer;
  private int keyValueHead;
  private int heads;
  private int queryOffset;
  private int from;
  private int to;
  private float scale;

  /**
   * Allocates the scratch.
   *
   * @param maxHeads most query heads that share a KV head
   * @param maxTokens most positions of a span, a multiple of {@link KeyValuePages#TOKEN_UNIT}
   * @param headDim elements of a key
   */
  public AttentionSpan(int maxHeads, int maxTokens, int headDim) {
    scores = new float[maxHeads * maxTokens];
    this.maxTokens = maxTokens;
    row = new float[headDim];
  }

  /** The heads of a layer, and the factor of their scores. */
  public void heads(int layer, int keyValueHead, int heads, float scale) {
    this.layer = layer;
    this.keyValueHead = keyValueHead;
    this.heads = heads;
    this.scale = scale;
  }

  /**
   * The query row.
   *
   * @param query holds the heads' queries one after the other from {@code queryOffset} on
   */
  public void row(PageTable pages, float[] query, int queryOffset) {
    this.pages = pages;
    this.query = query;
    this.queryOffset = queryOffset;
  }

  /** Positions {@code from ≤ t < to}; {@code from} is the first of a page. */
  public void positions(int from, int to) {
    this.from = from;
    this.to = to;
  }

  /** Scratch {@code [heads, scoreStride]}. */
  public float[] scores() {
    return scores;
  }

  public int scoreStride() {
    return maxTokens;
  }

  /** Scratch {@code [headDim]} for one key or value. */
  public float[] row() {
    return row;
  }

  public PageTable pages() {
    return pages;
  }

  public float[] query() {
    return query;
  }

  public int layer() {
    return layer;
  }

  public int keyValueHead() {
    return keyValueHead;
  }

  public int numHeads() {
    return heads;
  }

  public int queryOffset() {
    return queryOffset;
  }

  public int from() {
    return from;
  }

  public int to() {
    return to;
  }

  public float scale() {
    return scale;
  }
}
