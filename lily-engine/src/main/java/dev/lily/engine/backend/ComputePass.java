package dev.lily.engine.backend;

import org.jspecify.annotations.Nullable;

/**
 * The operations a model is made of. Each verb is a whole step that a back end may fuse inside as
 * it likes. {@code R} is the number of rows of the plan. Reductions accumulate in fp32 or wider.
 *
 * <p>Contracts, each a test of the back-end contract suite: a row's result depends on its own
 * sequence only, bit for bit, whatever else is in the plan and however many threads run; prefill
 * cut anywhere gives the same states, pages and logits, bit for bit; nothing that was not written
 * is read. Operand records are built once and reused by every pass. Engine thread only.
 */
public interface ComputePass {
  /**
   * {@code x[r] = embedding[token(r)]}.
   *
   * @param embedding {@code [vocabulary, hidden]}
   * @param x {@code [R, hidden]}
   */
  void embed(Matrix embedding, Tensor x);

  /**
   * {@code x += branch; n = x / sqrt(mean(x²) + eps) * gain}: residual add and RMSNorm.
   *
   * @param x {@code [R, hidden]}, updated
   * @param branch {@code [R, hidden]}, absent before the first layer
   * @param gain {@code [hidden]}
   * @param n {@code [R, hidden]}, written
   */
  void addNormalize(Tensor x, @Nullable Tensor branch, Tensor gain, float eps, Tensor n);

  /** Several matrices over one input. */
  void projectStack(StackedProjection operands);

  /**
   * {@code out[r] = matrix · y[r]}.
   *
   * @param y {@code [R, columns]}
   * @param out {@code [R, rows]}
   */
  void project(Tensor y, Matrix matrix, Tensor out);

  /** Gated DeltaNet between its input projections and its output projection. */
  void gatedDelta(GatedDeltaOperands operands);

  /** Head norms, rotary embedding, and the append of keys and values to the pages. */
  void prepareAttention(AttentionOperands operands);

  /** Causal attention over the pages, output gate applied. */
  void attend(AttentionOperands operands);

  /** Sparse experts: routing, routed experts, shared expert, combined. */
  void experts(ExpertsOperands operands);

  /**
   * {@code rows[i] = x[logitRow(i)] + branch[logitRow(i)]}: keeps only the rows that need logits.
   *
   * @param x {@code [R, hidden]}
   * @param branch {@code [R, hidden]}, the last layer's branch
   * @param rows {@code [numLogitRows, hidden]}
   */
  void gatherRows(Tensor x, Tensor branch, Tensor rows);

  /** Final norm and output projection of the gathered rows. */
  void logits(LogitsOperands operands);

  /**
   * Chooses a token for each logit row whose sequence has a sampling slot, records it in the slot
   * and advances the slot's step.
   *
   * @param logits fp32 {@code [numLogitRows, vocabulary]}; left unchanged
   */
  void sample(Tensor logits);

  /**
   * Copies rows to the host once everything recorded before has run; readable after {@link
   * PendingPass#await}. For tests, tools and perplexity, not for the decode loop.
   *
   * @param destination {@code [numRows, columns]}
   */
  void copyOut(Tensor source, int firstRow, int numRows, float[] destination);

  /** Hands the pass to the device. */
  PendingPass submit();
}
