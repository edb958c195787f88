package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MinPTest {
  /** Relative to the likeliest: 0.6, 0.1, 1, 0.3. */
  @ParameterizedTest
  @CsvSource({"0, 0 1 2 3", "0.09, 0 1 2 3", "0.11, 0 2 3", "0.29, 0 2 3", "0.31, 0 2", "1, 2"})
  void dropsWhatIsFarBelowTheLikeliest(float minP, String ids) {
    Candidates candidates = CandidatesFixture.ofProbabilities(0.3, 0.05, 0.5, 0.15);
    MinP.apply(minP, candidates);
    assertThat(CandidatesFixture.ids(candidates))
        .containsExactly(Arrays.stream(ids.split(" ")).mapToInt(Integer::parseInt).toArray());
  }

  @Test
  void keepsAllThatAreAsLikelyAsTheLikeliest() {
    Candidates candidates = CandidatesFixture.ofLogits(2, 3, 1, 3);
    Temperature.apply(1, candidates);
    MinP.apply(1, candidates);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(1, 3);
  }
}
