package dev.lily.engine.sampling;

/**
 * Turns logits into {@linkplain Weights weights}: {@code weight((logit − largest) · (1 /
 * temperature))}, the reciprocal rounded to fp32 and at most the largest finite number. Candidates
 * whose weight rounds to 0 (below 2^-40 of the largest) are dropped. Order is that of the logits
 * before the division, which it cannot change.
 */
final class Temperature {
  private Temperature() {}

  static void apply(float temperature, Candidates candidates) {
    float inverse = Math.min(1 / temperature, Float.MAX_VALUE);
    float max = Float.NEGATIVE_INFINITY;
    for (int i = 0; i < candidates.size; i++) {
      max = Math.max(max, candidates.logits[i]);
    }
    int kept = 0;
    for (int i = 0; i < candidates.size; i++) {
      float logit = candidates.logits[i];
      long weight = logit == max ? Weights.ONE : Weights.of((logit - max) * inverse);
      if (weight > 0) {
        candidates.weights[i] = weight;
        candidates.move(i, kept++);
      }
    }
    candidates.size = kept;
  }
}
