package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNoException;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class SamplingOptionsTest {
  private static final SamplingOptions FULL =
      new SamplingOptions(0.7, 20, 0.8, 0.05, 1.5, 0.5, 1.1, Map.of(7, -1.0), 42L);

  private static Stream<Arguments> ranges() {
    return Stream.of(
        range("temperature", SamplingOptions.Builder::temperature, 0, 100),
        range("topP", SamplingOptions.Builder::topP, 0, 1),
        range("minP", SamplingOptions.Builder::minP, 0, 1),
        range("presencePenalty", SamplingOptions.Builder::presencePenalty, -2, 2),
        range("frequencyPenalty", SamplingOptions.Builder::frequencyPenalty, -2, 2),
        range(
            "repetitionPenalty", SamplingOptions.Builder::repetitionPenalty, Double.MIN_VALUE, 10),
        range("logitBias", (builder, value) -> builder.logitBias(Map.of(3, value)), -100, 100));
  }

  private static Arguments range(
      String option, BiConsumer<SamplingOptions.Builder, Double> setter, double min, double max) {
    return Arguments.of(option, setter, min, max);
  }

  @ParameterizedTest
  @MethodSource("ranges")
  void acceptsItsRange(
      String option, BiConsumer<SamplingOptions.Builder, Double> setter, double min, double max) {
    for (double value : new double[] {min, (min + max) / 2, max}) {
      assertThatNoException().as(option).isThrownBy(() -> build(setter, value));
    }
  }

  @ParameterizedTest
  @MethodSource("ranges")
  void refusesWhatIsOutsideItsRangeByName(
      String option, BiConsumer<SamplingOptions.Builder, Double> setter, double min, double max) {
    double[] outside = {
      Math.nextDown(min),
      Math.nextUp(max),
      Double.NaN,
      Double.POSITIVE_INFINITY,
      Double.NEGATIVE_INFINITY
    };
    for (double value : outside) {
      assertThatExceptionOfType(InvalidSamplingException.class)
          .as("%s = %s", option, value)
          .isThrownBy(() -> build(setter, value))
          .withMessageContainingAll(option, String.valueOf(value))
          .matches(e -> e.option().equals(option));
    }
  }

  private static SamplingOptions build(
      BiConsumer<SamplingOptions.Builder, Double> setter, double value) {
    SamplingOptions.Builder builder = SamplingOptions.builder();
    setter.accept(builder, value);
    return builder.build();
  }

  @Test
  void saysWhatIsAllowed() {
    assertThatExceptionOfType(InvalidSamplingException.class)
        .isThrownBy(() -> SamplingOptions.builder().topP(1.5).build())
        .withMessage("topP is 1.5; it must be at least 0.0 and at most 1.0");
    assertThatExceptionOfType(InvalidSamplingException.class)
        .isThrownBy(() -> SamplingOptions.builder().repetitionPenalty(0.0).build())
        .withMessage("repetitionPenalty is 0.0; it must be above 0 and at most 10.0");
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 0, 1, 20, Integer.MAX_VALUE})
  void acceptsTopK(int topK) {
    assertThat(SamplingOptions.builder().topK(topK).build().topK()).isEqualTo(topK);
  }

  @ParameterizedTest
  @ValueSource(ints = {-2, Integer.MIN_VALUE})
  void refusesOtherNegativeTopK(int topK) {
    assertThatExceptionOfType(InvalidSamplingException.class)
        .isThrownBy(() -> SamplingOptions.builder().topK(topK).build())
        .withMessageContaining("topK is " + topK)
        .matches(e -> e.option().equals("topK"));
  }

  @Test
  void refusesDamagedBiases() {
    Map<Integer, Double> withoutValue = new HashMap<>();
    withoutValue.put(5, null);
    Map<Integer, Double> withoutToken = new HashMap<>();
    withoutToken.put(null, 1.0);
    for (Map<Integer, Double> bias : List.of(withoutValue, withoutToken, Map.of(-1, 1.0))) {
      assertThatExceptionOfType(InvalidSamplingException.class)
          .isThrownBy(() -> SamplingOptions.builder().logitBias(bias).build())
          .matches(e -> e.option().equals("logitBias"));
    }
  }

  @Test
  void copiesTheBiases() {
    Map<Integer, Double> bias = new HashMap<>(Map.of(1, 2.0));
    SamplingOptions options = SamplingOptions.builder().logitBias(bias).build();
    bias.put(2, 3.0);
    assertThat(options.logitBias()).containsExactly(Map.entry(1, 2.0));
  }

  @Test
  void takesEveryUnsaidOptionFromTheDefaults() {
    assertThat(SamplingOptions.NONE.orElse(FULL)).isEqualTo(FULL);
    assertThat(FULL.orElse(SamplingOptions.NONE)).isEqualTo(FULL);
  }

  @Test
  void keepsEverySaidOption() {
    SamplingOptions other =
        new SamplingOptions(1.0, 1, 1.0, 0.0, 0.0, 0.0, 1.0, Map.of(8, 1.0), 1L);
    assertThat(FULL.orElse(other)).isEqualTo(FULL);
    assertThat(other.orElse(FULL)).isEqualTo(other);
  }

  @Test
  void layersEachOptionByItself() {
    SamplingOptions request = SamplingOptions.builder().temperature(0.0).seed(1L).build();
    SamplingOptions properties = SamplingOptions.builder().temperature(0.5).topK(5).build();
    SamplingOptions merged = request.orElse(properties).orElse(FULL);
    assertThat(merged)
        .isEqualTo(new SamplingOptions(0.0, 5, 0.8, 0.05, 1.5, 0.5, 1.1, Map.of(7, -1.0), 1L));
  }

  @Test
  void greedyIsTemperatureZero() {
    assertThat(SamplingOptions.GREEDY)
        .isEqualTo(SamplingOptions.builder().temperature(0.0).build());
  }
}
