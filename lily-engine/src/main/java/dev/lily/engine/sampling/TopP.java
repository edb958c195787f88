package dev.lily.engine.sampling;

/**
 * Keeps the smallest set of likeliest candidates whose share of all candidates' weight reaches p,
 * at least one: the weight needed is {@code ceil(total · round(p · 2^30) / 2^30)}.
 */
final class TopP {
  private TopP() {}

  static void apply(float topP, Candidates candidates) {
    if (topP < 1) {
      candidates.keepLikeliest(needed(candidates.totalWeight(), topP));
    }
  }

  private static long needed(long total, float topP) {
    long share = Math.round(topP * 0x1p30);
    long high = total >>> 30;
    long low = total & ((1L << 30) - 1);
    return Math.max(1, high * share + ((low * share + (1L << 30) - 1) >>> 30));
  }
}
