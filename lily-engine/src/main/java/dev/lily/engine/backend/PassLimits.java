package dev.lily.engine.backend;

/**
 * The largest pass a back end must be ready for. Scratch memory is sized from it.
 *
 * @param maxRows rows of one plan
 * @param maxSequences sequences of one plan
 * @param maxLogitRows rows of one plan that need logits
 * @param maxPositions tokens of one sequence
 */
public record PassLimits(int maxRows, int maxSequences, int maxLogitRows, int maxPositions) {}
