package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WeightsTest {
  /** Computed with exact fractions, each step rounded to fp32 as the definition says. */
  @ParameterizedTest
  @CsvSource({
    "0, 1099511627776",
    "-1e-30, 1099511627776",
    "-0.125, 970315595776",
    "-0.34657, 777474932736",
    "-0.34658, 777467133952",
    "-0.5, 666887520256",
    "-1, 404487733248",
    "-2.302585, 109951188992",
    "-7.75, 473606432",
    "-13.1, 2248754",
    "-20.5, 1374",
    "-27.7, 1",
    "-27.75, 0"
  })
  void followsItsDefinitionBitForBit(float x, long weight) {
    assertThat(Weights.of(x)).isEqualTo(weight);
  }

  @Test
  void isTheExponentialToSinglePrecision() {
    for (float x = 0; x > Weights.LOWEST; x -= 0.0037f) {
      double exact = Math.exp(x) * Weights.ONE;
      assertThat((double) Weights.of(x)).as("x = %s", x).isCloseTo(exact, within(exact * 2e-7 + 1));
    }
  }

  @ParameterizedTest
  @ValueSource(
      floats = {-27.76f, -100, -1e30f, -Float.MAX_VALUE, Float.NEGATIVE_INFINITY, Float.NaN})
  void isNothingFarBelowTheLikeliest(float x) {
    assertThat(Weights.of(x)).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, Weights.MAX_VOCABULARY_SIZE + 1, Integer.MAX_VALUE})
  void refusesVocabulariesItCannotSum(int vocabularySize) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Sampler(vocabularySize))
        .withMessageContaining(String.valueOf(vocabularySize));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new SamplerState(vocabularySize))
        .withMessageContaining(String.valueOf(vocabularySize));
  }
}
