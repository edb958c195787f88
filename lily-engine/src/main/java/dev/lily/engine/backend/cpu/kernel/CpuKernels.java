package dev.lily.engine.backend.cpu.kernel;

/**
 * One implementation of each family.
 *
 * @param detail the family in words, for logs
 */
public record CpuKernels(
    String detail,
    MatmulKernels matmul,
    NormKernels norm,
    ElementwiseKernels elementwise,
    AttentionKernels attention,
    DeltaRuleKernels deltaRule) {}
