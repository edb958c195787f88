package dev.lily.engine.sampling;

/**
 * Unnormalised probabilities as fixed-point numbers: {@code weight(x) ≈ e^x · 2^40} for {@code x ≤
 * 0}, the logit's distance from the largest one. Sums of integers do not depend on the order in
 * which they are taken, so every cut and every draw is the same on one core, on many, and on a GPU.
 *
 * <p>The exponential is defined by its steps, in fp32 with fused multiply-adds and nothing else, so
 * that it can be repeated bit for bit: with {@code n = trunc(x · log2 e − 0.5)} and {@code r = x −
 * n · ln 2} in two parts, a polynomial gives {@code e^r}, exact as a multiple of 2^-24; shifted
 * left by 16 and right by {@code −n} it is the weight, rounded down. Below {@value #LOWEST} the
 * weight is 0.
 */
final class Weights {
  /** The weight of the likeliest token. */
  static final long ONE = 1L << 40;

  /** Keeps every sum of weights below 2^62. */
  static final int MAX_VOCABULARY_SIZE = 1 << 22;

  /** A little below ln(2^-40). */
  static final float LOWEST = -27.75f;

  private static final float LOG2_E = 1.442695f;
  private static final float LN2_HIGH = 0x1.63p-1f;
  private static final float LN2_LOW = -2.12194440e-4f;

  private Weights() {}

  static long of(float x) {
    if (!(x >= LOWEST)) {
      return 0;
    }
    int n = (int) Math.fma(x, LOG2_E, -0.5f);
    float r = Math.fma(-n, LN2_LOW, Math.fma(-n, LN2_HIGH, x));
    float q = 1.9875691e-4f;
    q = Math.fma(q, r, 1.3981999e-3f);
    q = Math.fma(q, r, 8.333452e-3f);
    q = Math.fma(q, r, 4.1665796e-2f);
    q = Math.fma(q, r, 1.6666666e-1f);
    q = Math.fma(q, r, 0.5f);
    float power = Math.fma(q, r * r, r) + 1;
    return (long) (int) (power * 0x1p24f) << 16 >>> -n;
  }

  static void checkVocabularySize(int vocabularySize) {
    if (vocabularySize < 1 || vocabularySize > MAX_VOCABULARY_SIZE) {
      throw new IllegalArgumentException(
          "Vocabulary size is "
              + vocabularySize
              + "; the sampler takes 1 to "
              + MAX_VOCABULARY_SIZE);
    }
  }
}
