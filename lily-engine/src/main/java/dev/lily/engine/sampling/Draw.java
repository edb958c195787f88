package dev.lily.engine.sampling;

/**
 * Chooses by inverse distribution function. The random number of a step depends on seed and step
 * alone: {@code u} is output number {@code step} (from 0) of SplitMix64 started at the seed. With
 * {@code target = floor(u · total / 2^64)}, the choice is the first candidate in ascending order of
 * ids at which the running sum of weights exceeds the target.
 */
final class Draw {
  private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

  private Draw() {}

  static int choose(long seed, long step, Candidates candidates) {
    long target = Math.unsignedMultiplyHigh(random(seed, step), candidates.totalWeight());
    int i = 0;
    while (target >= candidates.weights[i]) {
      target -= candidates.weights[i++];
    }
    return candidates.ids[i];
  }

  static long random(long seed, long step) {
    long z = seed + (step + 1) * GOLDEN_GAMMA;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }
}
