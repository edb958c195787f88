package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TopPTest {
  @ParameterizedTest
  @CsvSource({
    "0, 2",
    "1e-9, 2",
    "0.49, 2",
    "0.51, 0 2",
    "0.79, 0 2",
    "0.81, 0 2 3",
    "0.94, 0 2 3",
    "0.96, 0 1 2 3",
    "1, 0 1 2 3"
  })
  void keepsTheSmallestSetThatReachesP(float topP, String ids) {
    Candidates candidates = CandidatesFixture.ofProbabilities(0.3, 0.05, 0.5, 0.15);
    TopP.apply(topP, candidates);
    assertThat(CandidatesFixture.ids(candidates))
        .containsExactly(Arrays.stream(ids.split(" ")).mapToInt(Integer::parseInt).toArray());
  }

  @Test
  void countsAnExactShareAsReached() {
    Candidates candidates = CandidatesFixture.ofLogits(3, 3, 3, 3);
    Temperature.apply(1, candidates);
    TopP.apply(0.5f, candidates);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(0, 1);
  }

  @Test
  void keepsEveryoneJustBelowOneWhenAllAreEqual() {
    Candidates candidates = CandidatesFixture.ofLogits(3, 3, 3, 3);
    Temperature.apply(1, candidates);
    TopP.apply(Math.nextDown(1f), candidates);
    assertThat(candidates.size).isEqualTo(4);
  }
}
