package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.FloatRange;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Scale;

class SamplerPropertyTest {
  @Property(tries = 500)
  void topPKeepsTheSmallestSufficientSet(
      @ForAll("usableLogits") float[] logits,
      @ForAll @FloatRange(min = 0, max = 0.9999f) @Scale(4) float topP) {
    Candidates candidates = CandidatesFixture.ofLogits(logits);
    Temperature.apply(1, candidates);
    double total = candidates.totalWeight();
    int[] before = CandidatesFixture.ids(candidates);
    TopP.apply(topP, candidates);
    List<Integer> kept = Arrays.stream(CandidatesFixture.ids(candidates)).boxed().toList();

    assertThat(kept).isNotEmpty().isSorted();
    int worst = kept.stream().max(likeliestFirst(logits)).orElseThrow();
    for (int id : before) {
      boolean likelier = likeliestFirst(logits).compare(id, worst) <= 0;
      assertThat(kept.contains(id)).isEqualTo(likelier);
    }
    double share = candidates.totalWeight() / total;
    double withoutWorst = share - candidates.weights[kept.indexOf(worst)] / total;
    assertThat(share).isGreaterThanOrEqualTo(topP - 1e-9);
    assertThat(kept.size() == 1 || withoutWorst < topP + 1e-9).isTrue();
  }

  @Property(tries = 300)
  void selectingIsSortingAndCutting(
      @ForAll("anyLogits") float[] logits, @ForAll @IntRange(min = 1, max = 400) int k) {
    int[] expected =
        IntStream.range(0, logits.length)
            .boxed()
            .filter(id -> logits[id] > Float.NEGATIVE_INFINITY)
            .sorted(likeliestFirst(logits))
            .limit(k)
            .mapToInt(Integer::intValue)
            .sorted()
            .toArray();
    Candidates candidates = new Candidates(logits.length);
    new TopK().select(logits, logits.length, k, candidates);
    assertThat(CandidatesFixture.ids(candidates)).isEqualTo(expected);
  }

  @Property(tries = 500)
  void aMaskIsTheSameAsImpossibleLogits(
      @ForAll("usableLogits") float[] logits,
      @ForAll("options") SamplingOptions options,
      @ForAll long seed,
      @ForAll("maskWords") long[] words) {
    words[0] |= 1;
    float[] impossible = logits.clone();
    for (int id = 0; id < logits.length; id++) {
      if ((words[id >> 6] >>> id & 1) == 0) {
        impossible[id] = Float.NEGATIVE_INFINITY;
      }
    }
    SamplingParameters parameters = SamplingParameters.of(options, seed, -1);
    SamplerState masked = new SamplerState(logits.length);
    SamplerState plain = new SamplerState(logits.length);
    masked.begin(parameters, new int[0]);
    masked.mask(Arrays.copyOf(words, (logits.length + 63) / 64));
    plain.begin(parameters, new int[0]);
    Sampler sampler = new Sampler(logits.length);
    for (int step = 0; step < 5; step++) {
      int token = sampler.sample(logits, 0, masked, new SampledToken());
      assertThat(token).isEqualTo(sampler.sample(impossible, 0, plain, new SampledToken()));
      assertThat(words[token >> 6] >>> token & 1).isEqualTo(1);
    }
  }

  @Property(tries = 500)
  void aTokenIsFoundWheneverOneIsUsable(
      @ForAll("anyLogits") float[] logits,
      @ForAll("options") SamplingOptions options,
      @ForAll long seed) {
    logits[logits.length / 2] = -3e4f;
    SamplerState state = new SamplerState(logits.length);
    state.begin(SamplingParameters.of(options, seed, 20), new int[0]);
    SampledToken out = new SampledToken();
    int token = new Sampler(logits.length).sample(logits, 0, state, out);
    assertThat(logits[token]).isGreaterThan(Float.NEGATIVE_INFINITY);
    assertThat(out.logprob()).isLessThanOrEqualTo(0);
    assertThat(out.numTopLogprobs()).isPositive();
    for (int rank = 1; rank < out.numTopLogprobs(); rank++) {
      assertThat(out.topLogprob(rank)).isLessThanOrEqualTo(out.topLogprob(rank - 1));
    }
  }

  @Property(tries = 300)
  void addingAConstantToEveryLogitChangesNothing(
      @ForAll("usableLogits") float[] logits, @ForAll @IntRange(min = -64, max = 64) int shift) {
    // Multiples of 1/64 keep the sums exact.
    float[] shifted = new float[logits.length];
    for (int id = 0; id < logits.length; id++) {
      logits[id] = Math.round(logits[id] * 64) / 64f;
      shifted[id] = logits[id] + shift;
    }
    SamplingParameters parameters = SamplingParameters.of(SamplingOptions.NONE, shift, 3);
    SamplerState one = new SamplerState(logits.length);
    SamplerState other = new SamplerState(logits.length);
    one.begin(parameters, new int[0]);
    other.begin(parameters, new int[0]);
    Sampler sampler = new Sampler(logits.length);
    SampledToken expected = new SampledToken();
    SampledToken actual = new SampledToken();
    for (int step = 0; step < 5; step++) {
      sampler.sample(logits, 0, one, expected);
      sampler.sample(shifted, 0, other, actual);
      assertThat(actual.token()).isEqualTo(expected.token());
      assertThat(actual.logprob()).isEqualTo(expected.logprob());
    }
  }

  @Provide
  Arbitrary<float[]> usableLogits() {
    return Arbitraries.oneOf(
            Arbitraries.floats().between(-20, 20),
            Arbitraries.integers().between(-3, 3).map(Integer::floatValue))
        .array(float[].class)
        .ofMinSize(1)
        .ofMaxSize(200);
  }

  @Provide
  Arbitrary<float[]> anyLogits() {
    return Arbitraries.frequencyOf(
            Tuple.of(8, Arbitraries.floats().between(-20, 20)),
            Tuple.of(2, Arbitraries.floats()),
            Tuple.of(
                1,
                Arbitraries.of(
                    Float.NaN,
                    Float.NEGATIVE_INFINITY,
                    Float.POSITIVE_INFINITY,
                    0f,
                    -0f,
                    Float.MIN_VALUE,
                    -Float.MAX_VALUE)))
        .array(float[].class)
        .ofMinSize(1)
        .ofMaxSize(400);
  }

  @Provide
  Arbitrary<long[]> maskWords() {
    return Arbitraries.longs().array(long[].class).ofSize(4);
  }

  @Provide
  Arbitrary<SamplingOptions> options() {
    return Arbitraries.of(SamplerTest.optionSets());
  }

  private static Comparator<Integer> likeliestFirst(float[] logits) {
    return (one, other) -> {
      float a = logits[one];
      float b = logits[other];
      return a > b ? -1 : a < b ? 1 : Integer.compare(one, other);
    };
  }
}
