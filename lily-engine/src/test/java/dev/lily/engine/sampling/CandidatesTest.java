package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CandidatesTest {
  @ParameterizedTest
  @CsvSource({"1, 1", "3, 1", "4, 1 3", "5, 1 3", "6, 0 1 3", "9, 0 1 2 3"})
  void keepsTheFewestThatReachTheNeededWeight(long needed, String ids) {
    Candidates candidates = CandidatesFixture.ofLogits(0.5f, 4, -3, 2);
    System.arraycopy(new long[] {2, 3, 2, 2}, 0, candidates.weights, 0, 4);
    candidates.keepLikeliest(needed);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(ints(ids));
  }

  @Test
  void keepsLowerIdsAmongEqualLogits() {
    Candidates candidates = CandidatesFixture.ofLogits(-1, 7, -1, -1, 7);
    System.arraycopy(new long[] {10, 20, 10, 10, 20}, 0, candidates.weights, 0, 5);
    candidates.keepLikeliest(60);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(0, 1, 2, 4);
    assertThat(CandidatesFixture.weights(candidates)).containsExactly(10, 20, 10, 20);
    candidates.keepLikeliest(20);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(1);
  }

  @Test
  void ordersZerosInfinitiesAndNeighbours() {
    float one = 1;
    Candidates candidates =
        CandidatesFixture.ofLogits(
            -0f,
            0f,
            Float.POSITIVE_INFINITY,
            -Float.MAX_VALUE,
            Math.nextUp(one),
            one,
            Float.MIN_VALUE,
            -Float.MIN_VALUE);
    Arrays.fill(candidates.weights, 1);
    candidates.keepLikeliest(7);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(0, 1, 2, 4, 5, 6, 7);
    candidates.keepLikeliest(5);
    assertThat(CandidatesFixture.ids(candidates)).containsExactly(0, 2, 4, 5, 6);
  }

  private static int[] ints(String spaced) {
    return Arrays.stream(spaced.split(" ")).mapToInt(Integer::parseInt).toArray();
  }
}
