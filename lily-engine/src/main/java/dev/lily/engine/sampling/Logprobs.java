package dev.lily.engine.sampling;

/**
 * Log-probabilities under the softmax of unmodified logits: {@code logit − largest − ln(Σ weight /
 * 2^40)}, the sum over {@linkplain Weights weights} at temperature 1. NaN logits have no share.
 */
final class Logprobs {
  private Logprobs() {}

  static void report(
      float[] logits, int offset, int vocabularySize, int top, TopK topK, SampledToken out) {
    float max = logits[offset + TopK.argMax(logits, offset, vocabularySize)];
    long total = 0;
    for (int id = 0; id < vocabularySize; id++) {
      float logit = logits[offset + id];
      total += logit == max ? Weights.ONE : Weights.of(logit - max);
    }
    double logTotal = Math.log((double) total / Weights.ONE);
    int size = 0;
    if (top > 0) {
      size = topK.descending(logits, offset, vocabularySize, top, out.topTokens);
      for (int i = 0; i < size; i++) {
        out.topLogprobs[i] = logprob(logits[offset + out.topTokens[i]], max, logTotal);
      }
    }
    out.setLogprobs(logprob(logits[offset + out.token()], max, logTotal), size);
  }

  private static float logprob(float logit, float max, double logTotal) {
    return (float) ((logit == max ? 0 : (double) logit - max) - logTotal);
  }
}
