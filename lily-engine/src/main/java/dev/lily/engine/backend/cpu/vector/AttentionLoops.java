package dev.lily.engine.backend.cpu.vector;

import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import java.lang.foreign.MemorySegment;

/**
 * Inner loops of attention over one page, for one type of page, each flat with its sums in
 * registers. Elements go by pairs of vectors that lie {@link #apart}. Sums run over one dimension
 * or one token after the other, in order, whatever the type and the width of a vector.
 */
abstract class AttentionLoops {
  /** Distance in elements of the two vectors of a pair: a multiple of a vector, and half a run. */
  abstract int apart();

  /**
   * Scores of four heads, whose queries follow each other, for two vectors of tokens.
   *
   * @param token first of the pair
   * @param score where the first head's score of that token goes
   */
  abstract void scores4(
      KeyValuePages pages, MemorySegment page, int token, AttentionSpan span, int query, int score);

  /** Scores of two heads, which may be the same, for two vectors of tokens. */
  abstract void scores2(
      KeyValuePages pages,
      MemorySegment page,
      int token,
      AttentionSpan span,
      int query0,
      int query1,
      int score0,
      int score1);

  /**
   * Multiplies the weights of all heads by what the page's values are scaled with.
   *
   * @param p where the first head's weight of the page's first token is
   */
  void weigh(KeyValuePages pages, MemorySegment page, int tokens, AttentionSpan span, int p) {}

  /**
   * Adds a page's weighted values to the sums of four heads, for two vectors of dimensions.
   *
   * @param first dimension of the pair
   * @param sum where the first head's sum of that dimension is
   * @param size distance between the sums of two heads
   */
  abstract void values4(
      KeyValuePages pages,
      MemorySegment page,
      int first,
      int tokens,
      AttentionSpan span,
      int p,
      float[] sums,
      int sum,
      int size);

  /** The same for two heads, which may be the same. */
  abstract void values2(
      KeyValuePages pages,
      MemorySegment page,
      int first,
      int tokens,
      AttentionSpan span,
      int p0,
      int p1,
      float[] sums,
      int sum0,
      int sum1);

  /** Dimensions from {@code first} on, beyond the last pair of vectors, for one head. */
  abstract void valuesTail(
      KeyValuePages pages,
      MemorySegment page,
      int first,
      int tokens,
      AttentionSpan span,
      int p,
      float[] sums,
      int sum);
}
