package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SamplerTest {
  private static final float NONE = Float.NEGATIVE_INFINITY;
  private static final float NAN = Float.NaN;

  @Test
  void takesTheLowestIdOfEqualMaximaWhenGreedy() {
    assertThat(first(SamplingOptions.GREEDY, 1, 5, 5, 2)).isEqualTo(1);
    assertThat(first(SamplingOptions.builder().topK(1).temperature(2.0).build(), 1, 5, 5, 2))
        .isEqualTo(1);
  }

  @Test
  void isGreedyAtTemperatureZeroWhateverTheFilters() {
    for (int topK : new int[] {-1, 0, 1, 40}) {
      SamplingOptions options =
          SamplingOptions.builder().temperature(0.0).topP(0.1).topK(topK).build();
      for (long seed = 0; seed < 20; seed++) {
        assertThat(sequence(options, seed, 5, 1, 3, 2.99f, 0)).containsOnly(1);
      }
    }
  }

  @Test
  void appliesBiasAndPenaltiesWhenGreedy() {
    assertThat(
            first(
                SamplingOptions.builder().temperature(0.0).logitBias(Map.of(3, 4.5)).build(),
                1,
                5,
                5,
                1))
        .isEqualTo(3);
    SamplingOptions presence =
        SamplingOptions.builder().temperature(0.0).presencePenalty(1.5).build();
    assertThat(sequence(presence, 0, 6, 1, 3, 2, 0)).containsExactly(1, 2, 1, 1, 1, 1);
  }

  @Test
  void biasComesBeforeTopK() {
    SamplingOptions options =
        SamplingOptions.builder().topK(2).logitBias(Map.of(0, 100.0, 3, 100.0)).build();
    assertThat(reachable(options, 0, 5, 4, 0)).containsExactlyInAnyOrder(0, 3);
  }

  @Test
  void topPIsTakenOfWhatTopKLeft() {
    float[] logits = CandidatesFixture.logits(0.3, 0.05, 0.5, 0.15);
    assertThat(reachable(SamplingOptions.builder().topP(0.6).build(), logits))
        .containsExactlyInAnyOrder(0, 2);
    // Of 0.5 and 0.3 the likelier has a share of 0.625.
    assertThat(reachable(SamplingOptions.builder().topK(2).topP(0.6).build(), logits))
        .containsExactly(2);
  }

  @Test
  void temperatureComesBeforeTopP() {
    float[] logits = CandidatesFixture.logits(0.3, 0.05, 0.5, 0.15);
    // Squared and normalised: 0.247, 0.007, 0.685, 0.062.
    assertThat(reachable(SamplingOptions.builder().temperature(0.5).topP(0.6).build(), logits))
        .containsExactly(2);
  }

  @Test
  void temperatureComesBeforeMinP() {
    float[] logits = CandidatesFixture.logits(0.3, 0.05, 0.5, 0.15);
    // Square roots relative to the likeliest: 0.77, 0.32, 1, 0.55.
    assertThat(reachable(SamplingOptions.builder().temperature(2.0).minP(0.5).build(), logits))
        .containsExactlyInAnyOrder(0, 2, 3);
    assertThat(reachable(SamplingOptions.builder().minP(0.5).build(), logits))
        .containsExactlyInAnyOrder(0, 2);
  }

  @Test
  void keepsTheLikeliestTokenWhenTopPIsZeroOrMinPIsOne() {
    assertThat(reachable(SamplingOptions.builder().topP(0.0).build(), 1, 5, 2, 4.9f))
        .containsExactly(1);
    assertThat(reachable(SamplingOptions.builder().topP(0.0).build(), 1, 5, 5, 5))
        .containsExactly(1);
    assertThat(reachable(SamplingOptions.builder().minP(1.0).build(), 1, 5, 2, 4.9f))
        .containsExactly(1);
  }

  @Test
  void reachesEveryTokenWhenNothingIsFiltered() {
    assertThat(reachable(SamplingOptions.NONE, 1, 1, 1, 1)).containsExactlyInAnyOrder(0, 1, 2, 3);
    SamplingOptions off = SamplingOptions.builder().topK(-1).topP(1.0).minP(0.0).build();
    assertThat(reachable(off, 1, 1, 1, 1)).containsExactlyInAnyOrder(0, 1, 2, 3);
  }

  @Test
  void choosesOnlyWhatTheMaskAllows() {
    Sampler sampler = new Sampler(4);
    SamplerState state = begun(4, SamplingOptions.GREEDY, 0);
    SampledToken out = new SampledToken();
    float[] logits = {1, 5, 4, 2};
    state.mask(new long[] {0b1001});
    assertThat(sampler.sample(logits, 0, state, out)).isEqualTo(3);
    assertThat(sampler.sample(logits, 0, state, out)).isEqualTo(3);
    state.mask(null);
    assertThat(sampler.sample(logits, 0, state, out)).isEqualTo(1);
  }

  @Test
  void aBiasCannotLiftTheMask() {
    SamplerState state =
        begun(4, SamplingOptions.builder().topK(1).logitBias(Map.of(1, 100.0)).build(), 0);
    state.mask(new long[] {0b1001});
    assertThat(new Sampler(4).sample(new float[] {1, 5, 4, 2}, 0, state, new SampledToken()))
        .isEqualTo(3);
  }

  @Test
  void neverChoosesNaNOrNegativeInfinity() {
    for (SamplingOptions options : optionSets()) {
      assertThat(reachable(options, NAN, 1, NONE, 1)).isSubsetOf(1, 3);
    }
  }

  @Test
  void choosesAmongPositiveInfinitiesOnly() {
    float infinity = Float.POSITIVE_INFINITY;
    assertThat(first(SamplingOptions.GREEDY, 1, infinity, 3, infinity)).isEqualTo(1);
    assertThat(reachable(SamplingOptions.NONE, 1, infinity, NAN, infinity))
        .containsExactlyInAnyOrder(1, 3);
  }

  @Test
  void saysThatTheLogitsAreDamagedAndLeavesTheState() {
    for (SamplingOptions options : optionSets()) {
      SamplerState state = begun(4, options, 0);
      assertThatExceptionOfType(SamplingException.class)
          .isThrownBy(
              () ->
                  new Sampler(4)
                      .sample(new float[] {NAN, NONE, NAN, NAN}, 0, state, new SampledToken()))
          .withMessage(
              "Cannot choose token 0 of the answer: of 4 logits 3 are NaN and the rest negative"
                  + " infinity. The model's result is damaged.")
          .matches(e -> e.reason() == SamplingException.Reason.NO_USABLE_LOGIT);
      assertThat(state.step()).isZero();
      assertThat(state.lastToken()).isEqualTo(-1);
    }
  }

  @Test
  void saysThatTheMaskAllowsNothing() {
    for (SamplingOptions options : optionSets()) {
      SamplerState state = begun(70, options, 0);
      state.mask(new long[] {0, -1L << 6});
      assertThatExceptionOfType(SamplingException.class)
          .isThrownBy(() -> new Sampler(70).sample(new float[70], 0, state, new SampledToken()))
          .withMessage(
              "Cannot choose token 0 of the answer: the mask allows 0 of 70 tokens, none of them"
                  + " with a usable logit.")
          .matches(e -> e.reason() == SamplingException.Reason.NOTHING_ALLOWED);
    }
  }

  @Test
  void readsARowAtItsOffsetAndLeavesLogitsUnchanged() {
    float[] logits = {9, 9, 1, 2, 3, 0, 9};
    float[] before = logits.clone();
    SamplingOptions options =
        SamplingOptions.builder().temperature(0.0).logitBias(Map.of(1, 5.0)).build();
    SamplerState state = begun(4, options, 0);
    state.mask(new long[] {0b0111});
    assertThat(new Sampler(4).sample(logits, 2, state, new SampledToken())).isEqualTo(1);
    assertThat(logits).isEqualTo(before);
  }

  @Test
  void refusesRowsAndStatesOfAnotherSize() {
    Sampler sampler = new Sampler(4);
    SampledToken out = new SampledToken();
    SamplerState state = begun(4, SamplingOptions.NONE, 0);
    assertThatExceptionOfType(IndexOutOfBoundsException.class)
        .isThrownBy(() -> sampler.sample(new float[5], 2, state, out));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> sampler.sample(new float[5], 0, new SamplerState(5), out))
        .withMessage("Sampling state is for 5 tokens; this sampler for 4");
  }

  @Test
  void fillsAndClearsTheHolder() {
    SampledToken out = new SampledToken();
    assertThat(out.token()).isEqualTo(-1);
    SamplerState state = new SamplerState(4);
    state.begin(SamplingParameters.of(SamplingOptions.GREEDY, 0, 2), new int[0]);
    new Sampler(4).sample(new float[] {0, 1, 2, 3}, 0, state, out);
    assertThat(out.token()).isEqualTo(3);
    assertThat(out.numTopLogprobs()).isEqualTo(2);
    out.clear();
    assertThat(out.token()).isEqualTo(-1);
    assertThat(out.logprob()).isNaN();
    assertThat(out.numTopLogprobs()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 13, 64, 4098, 248_320})
  void findsTheFirstAndTheLastTokenOfAVocabulary(int vocabularySize) {
    for (SamplingOptions options : optionSets()) {
      float[] logits = new float[vocabularySize];
      logits[vocabularySize - 1] = 60;
      assertThat(first(options, logits)).isEqualTo(vocabularySize - 1);
      logits[0] = 120;
      assertThat(first(options, logits)).isZero();
    }
  }

  @Test
  void equalSeedsGiveEqualTokensAndOthersDoNot() {
    float[] logits = randomLogits(100, 3);
    List<Integer> tokens = sequence(SamplingOptions.NONE, 42, 50, logits);
    assertThat(sequence(SamplingOptions.NONE, 42, 50, logits)).isEqualTo(tokens);
    assertThat(sequence(SamplingOptions.NONE, 43, 50, logits)).isNotEqualTo(tokens);
  }

  @Test
  void theSeedOfTheOptionsWins() {
    float[] logits = randomLogits(100, 3);
    SamplingOptions seeded = SamplingOptions.builder().seed(42L).build();
    assertThat(sequence(seeded, 1, 50, logits))
        .isEqualTo(sequence(SamplingOptions.NONE, 42, 50, logits));
  }

  @Test
  void sequencesDoNotDisturbEachOther() {
    float[] logits = randomLogits(100, 3);
    List<Integer> alone = sequence(SamplingOptions.NONE, 42, 50, logits);
    Sampler sampler = new Sampler(100);
    SampledToken out = new SampledToken();
    SamplerState state = begun(100, SamplingOptions.NONE, 42);
    List<SamplerState> others = new ArrayList<>();
    for (SamplingOptions options : optionSets()) {
      others.add(begun(100, options, 7));
    }
    List<Integer> together = new ArrayList<>();
    for (int step = 0; step < 50; step++) {
      for (SamplerState other : others) {
        sampler.sample(logits, 0, other, out);
      }
      together.add(sampler.sample(logits, 0, state, out));
    }
    assertThat(together).isEqualTo(alone);
  }

  @Test
  void aReusedStateIsAsGoodAsNew() {
    float[] logits = randomLogits(100, 3);
    SamplerState state = new SamplerState(100);
    Sampler sampler = new Sampler(100);
    for (SamplingOptions options : optionSets()) {
      state.begin(SamplingParameters.of(options, 42, 3), new int[] {1, 2, 3});
      SamplerState fresh = new SamplerState(100);
      fresh.begin(SamplingParameters.of(options, 42, 3), new int[] {1, 2, 3});
      for (int step = 0; step < 50; step++) {
        SampledToken reused = new SampledToken();
        SampledToken expected = new SampledToken();
        sampler.sample(logits, 0, state, reused);
        new Sampler(100).sample(logits, 0, fresh, expected);
        assertThat(reused.token()).isEqualTo(expected.token());
        assertThat(reused.logprob()).isEqualTo(expected.logprob());
      }
      state.mask(new long[] {1, 0});
    }
  }

  /** Rounding could part the two about once in a million draws; the seeds are fixed. */
  @Test
  void agreesWithTheTextbook() {
    SplittableRandom random = new SplittableRandom(11);
    for (SamplingOptions options : optionSets()) {
      for (int round = 0; round < 40; round++) {
        int vocabularySize = random.nextInt(1, 90);
        float[] logits = randomLogits(vocabularySize, random.nextLong());
        SamplingParameters parameters = SamplingParameters.of(options, random.nextLong(), -1);
        List<Integer> prompt = random.ints(random.nextInt(20), 0, vocabularySize).boxed().toList();
        long[] allowed = random.nextBoolean() ? new long[] {random.nextLong() | 1, 0} : null;
        SamplerState state = new SamplerState(vocabularySize);
        state.begin(parameters, prompt.stream().mapToInt(Integer::intValue).toArray());
        if (allowed != null) {
          state.mask(Arrays.copyOf(allowed, (vocabularySize + 63) / 64));
        }
        Sampler sampler = new Sampler(vocabularySize);
        List<Integer> generated = new ArrayList<>();
        for (int step = 0; step < 12; step++) {
          int expected = ReferenceSampler.sample(logits, parameters, prompt, generated, allowed);
          assertThat(sampler.sample(logits, 0, state, new SampledToken()))
              .as("options %s, round %s, step %s", options, round, step)
              .isEqualTo(expected);
          generated.add(expected);
        }
      }
    }
  }

  @Test
  void aLoopGoesOnWithoutPenalties() {
    assertThat(loop(SamplingOptions.GREEDY, 400)).allMatch(token -> token < 4);
  }

  @Test
  void frequencyPenaltyBreaksALoopOnceItOutweighsTheLead() {
    SamplingOptions options =
        SamplingOptions.builder().temperature(0.0).frequencyPenalty(0.5).build();
    List<Integer> tokens = loop(options, 60);
    // The lead of 3 is used up when a token was seen more than 6 times: seven rounds of four.
    assertThat(tokens.subList(0, 28)).allMatch(token -> token < 4);
    assertThat(tokens.get(28)).isEqualTo(4);
    assertThat(new HashSet<>(tokens.subList(28, 60))).hasSizeGreaterThan(4);
  }

  @Test
  void presencePenaltyAppliesOnceAndSoLeavesALoopWithALargerLead() {
    SamplingOptions options =
        SamplingOptions.builder().temperature(0.0).presencePenalty(1.5).build();
    assertThat(loop(options, 400)).allMatch(token -> token < 4);
  }

  @Test
  void repetitionPenaltyAppliesOnceAndSoLeavesALoopWithALargerLead() {
    SamplingOptions options =
        SamplingOptions.builder().temperature(0.0).repetitionPenalty(1.3).build();
    assertThat(loop(options, 400)).allMatch(token -> token < 4);
    // 5 / 2.6 is below the others' 2.
    SamplingOptions stronger =
        SamplingOptions.builder().temperature(0.0).repetitionPenalty(2.6).build();
    assertThat(loop(stronger, 5)).containsExactly(0, 1, 2, 3, 4);
  }

  /** A model that has fallen into a loop over tokens 0 to 3, each leading the others by 3. */
  private static List<Integer> loop(SamplingOptions options, int steps) {
    Sampler sampler = new Sampler(12);
    SamplerState state = begun(12, options, 0);
    SampledToken out = new SampledToken();
    List<Integer> tokens = new ArrayList<>();
    for (int step = 0; step < steps; step++) {
      float[] logits = new float[12];
      Arrays.fill(logits, 4, 12, 2);
      logits[step % 4] = 5;
      tokens.add(sampler.sample(logits, 0, state, out));
    }
    return tokens;
  }

  static List<SamplingOptions> optionSets() {
    return List.of(
        SamplingOptions.NONE,
        SamplingOptions.GREEDY,
        SamplingOptions.builder().topK(20).topP(0.95).build(),
        SamplingOptions.builder().temperature(0.7).topK(20).topP(0.8).presencePenalty(1.5).build(),
        SamplingOptions.builder().topP(0.9).build(),
        SamplingOptions.builder().minP(0.1).temperature(1.5).build(),
        SamplingOptions.builder().topK(300).topP(0.99).build(),
        SamplingOptions.builder()
            .temperature(0.9)
            .topK(12)
            .topP(0.97)
            .minP(0.02)
            .presencePenalty(0.3)
            .frequencyPenalty(0.2)
            .repetitionPenalty(1.2)
            .logitBias(Map.of(0, 1.25))
            .build());
  }

  static float[] randomLogits(int vocabularySize, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    float[] logits = new float[vocabularySize];
    for (int id = 0; id < vocabularySize; id++) {
      logits[id] = (float) random.nextGaussian(0, 3);
    }
    return logits;
  }

  private static SamplerState begun(int vocabularySize, SamplingOptions options, long seed) {
    SamplerState state = new SamplerState(vocabularySize);
    state.begin(SamplingParameters.of(options, seed, -1), new int[0]);
    return state;
  }

  private static int first(SamplingOptions options, float... logits) {
    return sequence(options, 1, 1, logits).getFirst();
  }

  private static List<Integer> sequence(
      SamplingOptions options, long seed, int steps, float... logits) {
    Sampler sampler = new Sampler(logits.length);
    SamplerState state = begun(logits.length, options, seed);
    SampledToken out = new SampledToken();
    List<Integer> tokens = new ArrayList<>();
    for (int step = 0; step < steps; step++) {
      tokens.add(sampler.sample(logits, 0, state, out));
    }
    return tokens;
  }

  private static Set<Integer> reachable(SamplingOptions options, float... logits) {
    Set<Integer> tokens = new HashSet<>();
    for (long seed = 0; seed < 400; seed++) {
      tokens.add(first(SamplingOptions.builder().seed(seed).build().orElse(options), logits));
    }
    return tokens;
  }
}
