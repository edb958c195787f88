package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DrawTest {
  /** 99.9 % quantiles of chi-square. */
  private static final double CHI_SQUARE_3 = 16.27;

  private static final double CHI_SQUARE_15 = 37.70;

  private static final double[] PROBABILITIES = {0.1, 0.4, 0.2, 0.3};

  /** The JDK's generator is SplitMix64 too. */
  @ParameterizedTest
  @ValueSource(longs = {0, 1, 42, -1, Long.MIN_VALUE, 0x123456789ABCDEFL})
  void numbersAreThoseOfSplitMix64(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (int step = 0; step < 100; step++) {
      assertThat(Draw.random(seed, step)).isEqualTo(random.nextLong());
    }
  }

  @Test
  void walksTheWeightsInOrderOfIds() {
    Candidates candidates = new Candidates(3);
    candidates.add(0, 1);
    candidates.add(1, 3);
    candidates.add(2, 2);
    System.arraycopy(new long[] {1, 2, 1}, 0, candidates.weights, 0, 3);
    for (int step = 0; step < 200; step++) {
      // With a total of 4 the target is the top two bits of the random number.
      int expected = new int[] {0, 1, 1, 2}[(int) (Draw.random(7, step) >>> 62)];
      assertThat(Draw.choose(7, step, candidates)).isEqualTo(expected);
    }
  }

  @Test
  void alwaysTakesTheOnlyCandidate() {
    Candidates candidates = CandidatesFixture.ofProbabilities(1);
    for (int step = 0; step < 100; step++) {
      assertThat(Draw.choose(step * 31, step, candidates)).isZero();
    }
  }

  @Test
  void frequenciesOverStepsMatchProbabilities() {
    Candidates candidates = CandidatesFixture.ofProbabilities(PROBABILITIES);
    int[] counts = new int[4];
    for (int step = 0; step < 100_000; step++) {
      counts[Draw.choose(2026, step, candidates)]++;
    }
    assertThat(chiSquare(counts, PROBABILITIES)).isLessThan(CHI_SQUARE_3);
  }

  @Test
  void frequenciesOverNeighbouringSeedsMatchProbabilities() {
    Candidates candidates = CandidatesFixture.ofProbabilities(PROBABILITIES);
    int[] counts = new int[4];
    for (int seed = 0; seed < 100_000; seed++) {
      counts[Draw.choose(seed, 0, candidates)]++;
    }
    assertThat(chiSquare(counts, PROBABILITIES)).isLessThan(CHI_SQUARE_3);
  }

  @Test
  void successiveDrawsAreIndependent() {
    Candidates candidates = CandidatesFixture.ofProbabilities(PROBABILITIES);
    int[] counts = new int[16];
    double[] pairs = new double[16];
    for (int step = 0; step < 200_000; step += 2) {
      counts[4 * Draw.choose(5, step, candidates) + Draw.choose(5, step + 1, candidates)]++;
    }
    for (int i = 0; i < 16; i++) {
      pairs[i] = PROBABILITIES[i >> 2] * PROBABILITIES[i & 3];
    }
    assertThat(chiSquare(counts, pairs)).isLessThan(CHI_SQUARE_15);
  }

  private static double chiSquare(int[] counts, double[] probabilities) {
    double total = 0;
    for (int count : counts) {
      total += count;
    }
    double sum = 0;
    for (int i = 0; i < counts.length; i++) {
      double expected = total * probabilities[i];
      sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return sum;
  }
}
