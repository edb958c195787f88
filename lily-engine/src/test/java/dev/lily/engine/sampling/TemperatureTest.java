package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class TemperatureTest {
  @Test
  void givesProbabilitiesAtOne() {
    assertShares(1, 0.5, 0.3, 0.15, 0.05);
  }

  @Test
  void squaresProbabilitiesAtOneHalf() {
    double sum = 0.25 + 0.09 + 0.0225 + 0.0025;
    assertShares(0.5f, 0.25 / sum, 0.09 / sum, 0.0225 / sum, 0.0025 / sum);
  }

  @Test
  void takesSquareRootsAtTwo() {
    double sum = Math.sqrt(0.5) + Math.sqrt(0.3) + Math.sqrt(0.15) + Math.sqrt(0.05);
    assertShares(
        2,
        Math.sqrt(0.5) / sum,
        Math.sqrt(0.3) / sum,
        Math.sqrt(0.15) / sum,
        Math.sqrt(0.05) / sum);
  }

  @Test
  void leavesOnlyTheLikeliestWhenTiny() {
    for (float temperature : new float[] {1e-3f, Float.MIN_NORMAL, Float.MIN_VALUE}) {
      Candidates candidates = CandidatesFixture.ofLogits(1, 3, 2.9f, 3);
      Temperature.apply(temperature, candidates);
      assertThat(CandidatesFixture.ids(candidates)).containsExactly(1, 3);
      assertThat(CandidatesFixture.weights(candidates)).containsExactly(Weights.ONE, Weights.ONE);
    }
  }

  @Test
  void leavesOnlyPositiveInfinitiesBesideOne() {
    float infinity = Float.POSITIVE_INFINITY;
    Candidates candidates = CandidatesFixture.ofLogits(infinity, 3, infinity, Float.MAX_VALUE);
    Temperature.apply(1, candidates);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(0, 2);
    assertThat(CandidatesFixture.weights(candidates)).containsExactly(Weights.ONE, Weights.ONE);
  }

  @Test
  void spansTheWholeRangeOfFloats() {
    Candidates candidates =
        CandidatesFixture.ofLogits(-Float.MAX_VALUE, Float.MAX_VALUE, 0, Float.MIN_VALUE);
    Temperature.apply(1, candidates);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(1);
  }

  private static void assertShares(float temperature, double... expected) {
    Candidates candidates =
        CandidatesFixture.ofLogits(CandidatesFixture.logits(0.5, 0.3, 0.15, 0.05));
    Temperature.apply(temperature, candidates);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(0, 1, 2, 3);
    for (int i = 0; i < 4; i++) {
      assertThat((double) candidates.weights[i] / candidates.totalWeight())
          .isCloseTo(expected[i], within(1e-6));
    }
  }
}
