package dev.lily.engine.backend;

/**
 * Operands of one sparse-expert block.
 *
 * <pre>
 * p = softmax(router · n);  e_1..e_k = the k largest, lower index on ties;  w_i = p_i / Σ p
 * out = Σ_i w_i · down_e(silu(gate_e n) · (up_e n)) + sigmoid(sharedExpertGate · n) · shared(n)
 * </pre>
 *
 * Routing is fp32; contributions are summed in the order chosen (largest probability first), the
 * shared expert last.
 *
 * @param n {@code [R, hidden]}
 * @param router {@code [numExperts, hidden]}
 * @param gate stack of {@code [intermediate, hidden]}
 * @param up stack of {@code [intermediate, hidden]}
 * @param down stack of {@code [hidden, intermediate]}
 * @param sharedGate {@code [sharedIntermediate, hidden]}
 * @param sharedUp {@code [sharedIntermediate, hidden]}
 * @param sharedDown {@code [hidden, sharedIntermediate]}
 * @param sharedExpertGate {@code [1, hidden]}
 * @param routerLogits {@code [R, numExperts]}, written
 * @param out {@code [R, hidden]}, written
 */
public record ExpertsOperands(
    int numExpertsPerToken,
    Tensor n,
    Matrix router,
    Matrix gate,
    Matrix up,
    Matrix down,
    Matrix sharedGate,
    Matrix sharedUp,
    Matrix sharedDown,
    Matrix sharedExpertGate,
    Tensor routerLogits,
    Tensor out) {}
