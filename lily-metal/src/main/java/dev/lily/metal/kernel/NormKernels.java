package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputePipeline;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Residual add and RMSNorm. */
public final class NormKernels {
  static final List<String> NAMES = List.of("add_norm");

  private static final int THREADS = 256;

  private final KernelEncoder encoder;
  private final ComputePipeline addNorm;

  public NormKernels(KernelLibrary library, KernelEncoder encoder) {
    this.encoder = encoder;
    addNorm = library.pipeline("add_norm");
  }

  /**
   * {@code x += branch; n = norm(x) * gain}.
   *
   * @param x fp32 {@code [rows, columns]}
   * @param branch bf16, or absent
   * @param n bf16, written
   */
  public void addNorm(
      int rows, int columns, Region x, @Nullable Region branch, Region gain, float eps, Region n) {
    if (rows == 0) {
      return;
    }
    encoder.kernel(addNorm).read(x);
    if (branch == null) {
      encoder.constant(gain.buffer(), 0);
    } else {
      encoder.read(branch);
    }
    encoder
        .constant(gain.buffer(), 0)
        .write(x)
        .write(n)
        .field(columns)
        .field(branch == null ? 0 : 1)
        .field(eps)
        .parameters()
        .dispatch(rows, 1, 1, THREADS);
  }
}
