package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.within;

import java.util.Map;
import java.util.SplittableRandom;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class LogprobsTest {
  private static final float NONE = Float.NEGATIVE_INFINITY;

  @Test
  void areThoseOfTheModelsDistribution() {
    SampledToken out = sample(SamplingOptions.GREEDY, 4, null, probabilities());
    assertThat(out.token()).isEqualTo(2);
    assertThat(out.logprob()).isCloseTo((float) Math.log(0.5), within(1e-6f));
    assertThat(out.numTopLogprobs()).isEqualTo(4);
    int[] ids = {2, 0, 3, 1};
    double[] probabilities = {0.5, 0.3, 0.15, 0.05};
    for (int rank = 0; rank < 4; rank++) {
      assertThat(out.topToken(rank)).isEqualTo(ids[rank]);
      assertThat(out.topLogprob(rank))
          .isCloseTo((float) Math.log(probabilities[rank]), within(1e-6f));
    }
  }

  @Test
  void ignoreOptionsAndMask() {
    SamplingOptions options =
        SamplingOptions.builder().temperature(0.1).topK(2).logitBias(Map.of(1, 50.0)).build();
    SampledToken out = sample(options, 2, new long[] {0b1010}, probabilities());
    assertThat(out.token()).isEqualTo(1);
    assertThat(out.logprob()).isCloseTo((float) Math.log(0.05), within(1e-6f));
    assertThat(out.numTopLogprobs()).isEqualTo(2);
    assertThat(out.topToken(0)).isEqualTo(2);
    assertThat(out.topToken(1)).isZero();
  }

  @Test
  void listLowerIdsFirstAmongEquals() {
    SampledToken out = sample(SamplingOptions.GREEDY, 3, null, 1, 5, 5, 1);
    assertThat(new int[] {out.topToken(0), out.topToken(1), out.topToken(2)})
        .containsExactly(1, 2, 0);
  }

  @Test
  void listOnlyTokensThatAreNotImpossible() {
    SampledToken out = sample(SamplingOptions.GREEDY, 20, null, NONE, 0, Float.NaN, 0);
    assertThat(out.numTopLogprobs()).isEqualTo(2);
    assertThat(out.logprob()).isCloseTo((float) Math.log(0.5), within(1e-6f));
    assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> out.topToken(2));
    assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> out.topLogprob(2));
  }

  @Test
  void areZeroForACertainToken() {
    SampledToken out = sample(SamplingOptions.GREEDY, 1, null, 0, 1000, Float.MAX_VALUE, NONE);
    assertThat(out.logprob()).isZero();
    assertThat(out.topLogprob(0)).isZero();
  }

  @Test
  void shareBetweenPositiveInfinities() {
    float infinity = Float.POSITIVE_INFINITY;
    SampledToken out = sample(SamplingOptions.GREEDY, 2, null, 3, infinity, infinity, 3);
    assertThat(out.logprob()).isCloseTo((float) Math.log(0.5), within(1e-6f));
    assertThat(out.topLogprob(1)).isCloseTo((float) Math.log(0.5), within(1e-6f));
  }

  @Test
  void areLeftOutUnlessAsked() {
    SampledToken out = sample(SamplingOptions.GREEDY, -1, null, 1, 2, 3, 4);
    assertThat(out.logprob()).isNaN();
    assertThat(out.numTopLogprobs()).isZero();
  }

  @Test
  void comeWithoutAlternativesWhenZeroAreAsked() {
    SampledToken out = sample(SamplingOptions.GREEDY, 0, null, 0, 0, 0, 0);
    assertThat(out.logprob()).isCloseTo((float) Math.log(0.25), within(1e-6f));
    assertThat(out.numTopLogprobs()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 13, 64, 100, 4098, 248_320})
  void agreeWithDoublePrecision(int vocabularySize) {
    SplittableRandom random = new SplittableRandom(vocabularySize);
    for (double spread : new double[] {0.001, 1, 5, 30}) {
      float[] logits = new float[vocabularySize];
      double max = Double.NEGATIVE_INFINITY;
      for (int id = 0; id < vocabularySize; id++) {
        logits[id] = (float) random.nextGaussian(0, spread);
        max = Math.max(max, logits[id]);
      }
      double sum = 0;
      for (float logit : logits) {
        sum += Math.exp(logit - max);
      }
      double logSum = max + Math.log(sum);
      Offset<Double> tolerance = within(1e-6 + 1e-6 * spread);
      SampledToken out = sample(SamplingOptions.NONE, 20, null, logits);
      assertThat(out.logprob()).isLessThanOrEqualTo(0);
      assertThat((double) out.logprob()).isCloseTo(logits[out.token()] - logSum, tolerance);
      for (int rank = 0; rank < out.numTopLogprobs(); rank++) {
        assertThat((double) out.topLogprob(rank))
            .isCloseTo(logits[out.topToken(rank)] - logSum, tolerance);
      }
    }
  }

  private static float[] probabilities() {
    return CandidatesFixture.logits(0.3, 0.05, 0.5, 0.15);
  }

  private static SampledToken sample(
      SamplingOptions options, int topLogprobs, long[] mask, float... logits) {
    SamplerState state = new SamplerState(logits.length);
    state.begin(SamplingParameters.of(options, 1, topLogprobs), new int[0]);
    state.mask(mask);
    SampledToken out = new SampledToken();
    new Sampler(logits.length).sample(logits, 0, state, out);
    return out;
  }
}
