package dev.lily.engine.sampling;

/** {@code logit += bias} for each token that has one. */
final class LogitBias {
  private LogitBias() {}

  static void apply(SamplingParameters parameters, float[] logits) {
    int[] tokens = parameters.biasTokens();
    float[] values = parameters.biasValues();
    for (int i = 0; i < tokens.length; i++) {
      logits[tokens[i]] += values[i];
    }
  }
}
