package dev.lily.engine.backend.cpu.kernel;

/** Normalisation and residual addition of one row. */
public interface NormKernels {
  /** {@code x += branch} from {@code offset} on, for {@code count} elements. */
  void add(float[] x, float[] branch, int offset, int count);

  /**
   * {@code out = x / sqrt(mean(x²) + eps) * gain}. Input and output may be the same elements.
   *
   * @param gain {@code [count]}
   */
  void rmsNorm(
      float[] x, int offset, int count, float[] gain, float eps, float[] out, int outOffset);

  /** {@code x = x / sqrt(Σx² + eps) * factor} in place. */
  void l2Norm(float[] x, int offset, int count, float eps, float factor);

  /**
   * {@code y = rmsNorm(o, gain, eps) · silu(z)}.
   *
   * @param gain {@code [count]}
   */
  void gatedNorm(
      float[] o,
      int offset,
      int count,
      float[] gain,
      float eps,
      float[] z,
      int zOffset,
      float[] y,
      int yOffset);
}
