package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class TopKTest {
  private static final float NAN = Float.NaN;
  private static final float NONE = Float.NEGATIVE_INFINITY;

  private final TopK topK = new TopK();

  @ParameterizedTest
  @CsvSource({"1, 1", "2, 1 3", "3, 0 1 3", "4, 0 1 2 3", "5, 0 1 2 3", "0, 0 1 2 3"})
  void keepsTheLargestInOrderOfIds(int k, String ids) {
    assertThat(select(k, 0.5f, 4, -3, 2))
        .containsExactly(Arrays.stream(ids.split(" ")).mapToInt(Integer::parseInt).toArray());
  }

  @Test
  void prefersLowerIdsAmongEquals() {
    assertThat(select(2, 3, 3, 3, 3)).containsExactly(0, 1);
    assertThat(select(3, 0, 5, 0, 5)).containsExactly(0, 1, 3);
  }

  @Test
  void neverTakesNaNOrNegativeInfinity() {
    assertThat(select(3, NAN, 1, NONE, 2)).containsExactly(1, 3);
    assertThat(select(0, NAN, 1, NONE, 2)).containsExactly(1, 3);
    assertThat(select(3, NAN, NAN, NONE, NONE)).isEmpty();
    assertThat(select(0, NAN, NAN, NONE, NONE)).isEmpty();
  }

  @Test
  void ordersDescendingWithLowerIdsFirst() {
    int[] ids = new int[4];
    assertThat(topK.descending(new float[] {9, 9, 1, 7, 1, 7, NAN}, 2, 5, 4, ids)).isEqualTo(4);
    assertThat(ids).containsExactly(1, 3, 0, 2);
  }

  @Test
  void findsTheFirstOfEqualMaxima() {
    assertThat(TopK.argMax(new float[] {9, NAN, 2, 5, 5, 1}, 1, 5)).isEqualTo(2);
    assertThat(TopK.argMax(new float[] {0f, -0f}, 0, 2)).isZero();
    assertThat(TopK.argMax(new float[] {-0f, 0f}, 0, 2)).isZero();
    assertThat(TopK.argMax(new float[] {1, Float.POSITIVE_INFINITY}, 0, 2)).isEqualTo(1);
    assertThat(TopK.argMax(new float[] {NONE, NAN}, 0, 2)).isEqualTo(-1);
  }

  /** Both ways of selecting, at and around the limit between them. */
  @ParameterizedTest
  @ValueSource(ints = {1, 13, 64, 100, 255, 256, 257, 4098, 248_320})
  void agreesWithSortingEverything(int vocabularySize) {
    SplittableRandom random = new SplittableRandom(vocabularySize);
    float[] distinct = new float[vocabularySize];
    float[] tied = new float[vocabularySize];
    float[] ascending = new float[vocabularySize];
    float[] descending = new float[vocabularySize];
    for (int id = 0; id < vocabularySize; id++) {
      distinct[id] = (float) random.nextGaussian(0, 4);
      tied[id] = random.nextInt(-3, 4);
      ascending[id] = id;
      descending[id] = -id;
    }
    for (float[] logits : new float[][] {distinct, tied, ascending, descending}) {
      Integer[] sorted = sorted(logits);
      for (int k : new int[] {1, 2, 20, 255, 256, 257, 4000}) {
        int[] expected =
            Arrays.stream(sorted).limit(k).mapToInt(Integer::intValue).sorted().toArray();
        assertThat(select(k, logits)).as("k = %s", k).isEqualTo(expected);
      }
    }
  }

  private static Integer[] sorted(float[] logits) {
    return IntStream.range(0, logits.length)
        .boxed()
        .sorted(
            Comparator.comparing((Integer id) -> logits[id])
                .reversed()
                .thenComparing(Comparator.naturalOrder()))
        .toArray(Integer[]::new);
  }

  private int[] select(int k, float... logits) {
    Candidates candidates = new Candidates(logits.length);
    topK.select(logits, logits.length, k, candidates);
    for (int i = 0; i < candidates.size; i++) {
      assertThat(candidates.logits[i]).isEqualTo(logits[candidates.ids[i]]);
    }
    return CandidatesFixture.ids(candidates);
  }
}
