package dev.lily.engine.backend;

/**
 * Operands of one Gated DeltaNet layer (Yang et al., "Gated Delta Networks", 2024). For each
 * sequence, row by row in position order:
 *
 * <pre>
 * c = silu(causalConv(qkv))                 depthwise over all channels, last tap is the current row
 * q, k, v = split(c)                        q, k: [keyHeads, keyDim]; v: [valueHeads, valueDim]
 * k = k / sqrt(Σk² + 1e-6);  q = q / sqrt(Σq² + 1e-6) / sqrt(keyDim)
 * decay = exp(-exp(aLog) · softplus(a + dtBias));  beta = sigmoid(b)      one per value head
 * S = decay · S;  d = beta · (v - Sᵀk);  S = S + k dᵀ;  o = Sᵀ q          value head h uses key head
 *                                                                        h / (valueHeads / keyHeads)
 * y = rmsNorm(o, gain, eps) · silu(z)                                     per value head
 * </pre>
 *
 * The window keeps convolution inputs, not outputs. State and arithmetic are fp32.
 *
 * @param layer index among the delta layers
 * @param qkv {@code [R, 2 · keyHeads · keyDim + valueHeads · valueDim]}, rows q, k, v
 * @param z {@code [R, valueHeads · valueDim]}
 * @param a {@code [R, valueHeads]}
 * @param b {@code [R, valueHeads]}
 * @param convWeight {@code [channels · convKernel]}, the taps of a channel contiguous
 * @param aLog {@code [valueHeads]}
 * @param dtBias {@code [valueHeads]}
 * @param gain {@code [valueDim]}
 * @param y {@code [R, valueHeads · valueDim]}, written
 */
public record GatedDeltaOperands(
    int layer,
    int numKeyHeads,
    int numValueHeads,
    int keyDim,
    int valueDim,
    int convKernel,
    Tensor qkv,
    Tensor z,
    Tensor a,
    Tensor b,
    Tensor convWeight,
    Tensor aLog,
    Tensor dtBias,
    Tensor gain,
    float eps,
    Tensor y) {}
