package dev.lily.engine.sampling;

/**
 * Drops candidates less likely than {@code minP} times the likeliest one, whose weight is {@link
 * Weights#ONE}: those with a weight below {@code ceil(minP · 2^40)}.
 */
final class MinP {
  private MinP() {}

  static void apply(float minP, Candidates candidates) {
    if (minP <= 0) {
      return;
    }
    long least = (long) Math.ceil((double) minP * Weights.ONE);
    int kept = 0;
    for (int i = 0; i < candidates.size; i++) {
      if (candidates.weights[i] >= least) {
        candidates.move(i, kept++);
      }
    }
    candidates.size = kept;
  }
}
