package dev.lily.engine.backend;

/**
 * Operands of the model's head: {@code logits[i] = lmHead · rmsNorm(rows[i], gain)}.
 *
 * @param rows {@code [numLogitRows, hidden]}
 * @param gain {@code [hidden]}
 * @param lmHead {@code [paddedVocabulary, hidden]}; rows at and beyond the width of {@code logits}
 *     are not computed
 * @param normalized {@code [numLogitRows, hidden]}, written
 * @param logits fp32 {@code [numLogitRows, vocabulary]}, written
 */
public record LogitsOperands(
    Tensor rows, Tensor gain, float eps, Matrix lmHead, Tensor normalized, Tensor logits) {}
