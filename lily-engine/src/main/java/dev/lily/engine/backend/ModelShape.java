package dev.lily.engine.backend;

/**
 * The dimensions from which a back end sizes its own scratch.
 *
 * @param hiddenSize width of the residual stream
 * @param numAttentionHeads query heads of an attention layer
 * @param headDim elements per attention head
 * @param valueDim elements of all value heads of a delta layer together
 * @param numExperts routed experts per layer
 * @param numExpertsPerToken experts chosen per token
 * @param moeIntermediateSize width of a routed expert
 * @param sharedIntermediateSize width of the shared expert
 * @param vocabularySize rows of the output projection
 */
public record ModelShape(
    int hiddenSize,
    int numAttentionHeads,
    int headDim,
    int valueDim,
    int numExperts,
    int numExpertsPerToken,
    int moeIntermediateSize,
    int sharedIntermediateSize,
    int vocabularySize) {}
