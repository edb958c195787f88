package dev.lily.metal.kernel;

/** All families, recording into one encoder. */
public record MetalKernels(
    KernelEncoder encoder,
    MatmulKernels matmul,
    NormKernels norm,
    ElementwiseKernels elementwise,
    AttentionKernels attention,
    DeltaRuleKernels deltaRule,
    ExpertsKernels experts,
    SamplingKernels sampling) {

  /** Looks up every family's kernels. */
  public static MetalKernels of(
      KernelLibrary library,
      KernelEncoder encoder,
      DeviceMemory memory,
      MatrixLoader loader,
      long maxThreadgroupBytes) {
    return new MetalKernels(
        encoder,
        new MatmulKernels(library, encoder),
        new NormKernels(library, encoder),
        new ElementwiseKernels(library, encoder),
        new AttentionKernels(library, encoder, memory),
        new DeltaRuleKernels(library, encoder),
        new ExpertsKernels(library, encoder, loader, maxThreadgroupBytes),
        new SamplingKernels(library, encoder));
  }
}
