package dev.lily.engine.backend.cpu.kernel;

/**
 * Softmax attention over pages, in spans of positions that are computed alone and merged in order.
 * The partial result of a head is {@code headDim} sums of {@code exp(s - max) · v}, then {@code
 * max}, then the sum of {@code exp(s - max)}.
 */
public interface AttentionKernels {
  /** Elements that follow a head's sums in a partial result. */
  int PARTIAL_EXTRA = 2;

  /**
   * Attends to the positions of a span.
   *
   * @param partial receives one partial result per head, from {@code offset} on
   */
  void attend(KeyValuePages pages, AttentionSpan span, float[] partial, int offset);

  /** Merges the partial results of the following span into those of the spans before it. */
  void merge(float[] partial, int offset, float[] next, int nextOffset, int numHeads, int headDim);

  /** {@code y = sums / sum · sigmoid(gate)} for each head. */
  void finish(
      float[] partial,
      int offset,
      int numHeads,
      int headDim,
      float[] gate,
      float[] y,
      int rowOffset);
}
