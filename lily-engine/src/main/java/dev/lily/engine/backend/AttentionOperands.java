package dev.lily.engine.backend;

/**
 * Operands of one gated attention layer, for {@link ComputePass#prepareAttention} and {@link
 * ComputePass#attend}.
 *
 * <pre>
 * q_n, gate_n = halves of queryAndGate's block n       interleaved per head: [q | gate] of headDim each
 * q_n = rope(rmsNorm(q_n, queryGain), position);  k_m = rope(rmsNorm(k_m, keyGain), position)
 * append k, v to the pages
 * s_t = q_n · k_t / sqrt(headDim) for t ≤ position;  o_n = Σ softmax(s)_t v_t     fp32
 * y_n = o_n · sigmoid(gate_n)                            query head n uses KV head n / (heads / kvHeads)
 * </pre>
 *
 * The rotation is NeoX style over the first {@code rotaryDim} elements, pairs {@code (j, j +
 * rotaryDim / 2)}, frequency {@code ropeTheta^(-2j / rotaryDim)}.
 *
 * @param layer index among the attention layers
 * @param queryAndGate {@code [R, heads · 2 · headDim]}
 * @param key {@code [R, kvHeads · headDim]}
 * @param value {@code [R, kvHeads · headDim]}
 * @param queryGain {@code [headDim]}
 * @param keyGain {@code [headDim]}
 * @param query {@code [R, heads · headDim]}, written by prepareAttention
 * @param gate {@code [R, heads · headDim]}, written by prepareAttention
 * @param y {@code [R, heads · headDim]}, written by attend
 */
public record AttentionOperands(
    int layer,
    int numHeads,
    int numKeyValueHeads,
    int headDim,
    int rotaryDim,
    double ropeTheta,
    Tensor queryAndGate,
    Tensor key,
    Tensor value,
    Tensor queryGain,
    Tensor keyGain,
    float eps,
    Tensor query,
    Tensor gate,
    Tensor y) {}
