package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SamplingParametersTest {
  private static final int[] NO_TOKENS = {};
  private static final float[] NO_BIASES = {};

  @Test
  void turnsOffWhatIsUnsaid() {
    SamplingParameters parameters = SamplingParameters.of(SamplingOptions.NONE, 9, -1);
    assertThat(parameters.temperature()).isEqualTo(1);
    assertThat(parameters.topK()).isZero();
    assertThat(parameters.topP()).isEqualTo(1);
    assertThat(parameters.minP()).isZero();
    assertThat(parameters.presencePenalty()).isZero();
    assertThat(parameters.frequencyPenalty()).isZero();
    assertThat(parameters.repetitionPenalty()).isEqualTo(1);
    assertThat(parameters.biasTokens()).isEmpty();
    assertThat(parameters.biasValues()).isEmpty();
    assertThat(parameters.seed()).isEqualTo(9);
    assertThat(parameters.topLogprobs()).isEqualTo(-1);
    assertThat(parameters.isGreedy()).isFalse();
  }

  @Test
  void takesWhatIsSaid() {
    SamplingOptions options =
        new SamplingOptions(
            0.7, 20, 0.8, 0.05, 1.5, 0.5, 1.1, Map.of(70, -1.0, 3, 2.0, 2000, 0.5), 42L);
    SamplingParameters parameters = SamplingParameters.of(options, 9, 20);
    assertThat(parameters.temperature()).isEqualTo(0.7f);
    assertThat(parameters.topK()).isEqualTo(20);
    assertThat(parameters.topP()).isEqualTo(0.8f);
    assertThat(parameters.minP()).isEqualTo(0.05f);
    assertThat(parameters.presencePenalty()).isEqualTo(1.5f);
    assertThat(parameters.frequencyPenalty()).isEqualTo(0.5f);
    assertThat(parameters.repetitionPenalty()).isEqualTo(1.1f);
    assertThat(parameters.biasTokens()).containsExactly(3, 70, 2000);
    assertThat(parameters.biasValues()).containsExactly(2, -1, 0.5f);
    assertThat(parameters.seed()).isEqualTo(42);
    assertThat(parameters.topLogprobs()).isEqualTo(20);
  }

  @Test
  void readsTopKZeroAndMinusOneAsOff() {
    for (int topK : new int[] {0, -1}) {
      SamplingOptions options = SamplingOptions.builder().topK(topK).build();
      assertThat(SamplingParameters.of(options, 0, -1).topK()).isZero();
    }
  }

  @Test
  void isGreedyAtTemperatureZeroOrTopKOne() {
    assertThat(SamplingParameters.of(SamplingOptions.GREEDY, 0, -1).isGreedy()).isTrue();
    for (SamplingOptions options :
        new SamplingOptions[] {
          SamplingOptions.builder().temperature(-0.0).build(),
          SamplingOptions.builder().temperature(1e-60).build(),
          SamplingOptions.builder().temperature(1.5).topK(1).build()
        }) {
      assertThat(SamplingParameters.of(options, 0, -1).isGreedy()).isTrue();
    }
  }

  @Test
  void keepsATinyRepetitionPenaltyAboveZero() {
    SamplingOptions options = SamplingOptions.builder().repetitionPenalty(1e-300).build();
    assertThat(SamplingParameters.of(options, 0, -1).repetitionPenalty()).isPositive();
  }

  @ParameterizedTest
  @ValueSource(ints = {-2, 21, Integer.MAX_VALUE})
  void refusesOtherNumbersOfAlternatives(int topLogprobs) {
    assertThatExceptionOfType(InvalidSamplingException.class)
        .isThrownBy(() -> SamplingParameters.of(SamplingOptions.NONE, 0, topLogprobs))
        .withMessageContaining(String.valueOf(topLogprobs))
        .matches(e -> e.option().equals("topLogprobs"));
  }

  @Test
  void refusesEachParameterOutsideItsRange() {
    float nan = Float.NaN;
    assertRefused("temperature", -1, 0, 1, 0, 0, 0, 1);
    assertRefused("temperature", nan, 0, 1, 0, 0, 0, 1);
    assertRefused("temperature", Float.POSITIVE_INFINITY, 0, 1, 0, 0, 0, 1);
    assertRefused("topK", 1, -1, 1, 0, 0, 0, 1);
    assertRefused("topP", 1, 0, 1.01f, 0, 0, 0, 1);
    assertRefused("topP", 1, 0, nan, 0, 0, 0, 1);
    assertRefused("minP", 1, 0, 1, -0.1f, 0, 0, 1);
    assertRefused("minP", 1, 0, 1, nan, 0, 0, 1);
    assertRefused("presencePenalty", 1, 0, 1, 0, 2.5f, 0, 1);
    assertRefused("presencePenalty", 1, 0, 1, 0, nan, 0, 1);
    assertRefused("frequencyPenalty", 1, 0, 1, 0, 0, -2.5f, 1);
    assertRefused("frequencyPenalty", 1, 0, 1, 0, 0, nan, 1);
    assertRefused("repetitionPenalty", 1, 0, 1, 0, 0, 0, 0);
    assertRefused("repetitionPenalty", 1, 0, 1, 0, 0, 0, nan);
  }

  @Test
  void refusesDamagedBiases() {
    assertBiasRefused(new int[] {1, 2}, 0);
    assertBiasRefused(new int[] {-1}, 0);
    assertBiasRefused(new int[] {2, 1}, 0, 0);
    assertBiasRefused(new int[] {2, 2}, 0, 0);
    assertBiasRefused(new int[] {1}, Float.NaN);
    assertBiasRefused(new int[] {1}, 101);
  }

  private static void assertRefused(
      String option,
      float temperature,
      int topK,
      float topP,
      float minP,
      float presence,
      float frequency,
      float repetition) {
    assertThatExceptionOfType(InvalidSamplingException.class)
        .as(option)
        .isThrownBy(
            () ->
                new SamplingParameters(
                    temperature,
                    topK,
                    topP,
                    minP,
                    presence,
                    frequency,
                    repetition,
                    NO_TOKENS,
                    NO_BIASES,
                    0,
                    -1))
        .matches(e -> e.option().equals(option));
  }

  private static void assertBiasRefused(int[] tokens, float... values) {
    assertThatExceptionOfType(InvalidSamplingException.class)
        .isThrownBy(() -> new SamplingParameters(1, 0, 1, 0, 0, 0, 1, tokens, values, 0, -1))
        .matches(e -> e.option().equals("logitBias"));
  }
}
