package dev.lily.engine.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class LogitBiasTest {
  @Test
  void addsToTheNamedTokensOnly() {
    float[] logits = {1, 2, 3, Float.NEGATIVE_INFINITY};
    SamplingOptions options =
        SamplingOptions.builder().logitBias(Map.of(3, 100.0, 0, -2.5, 2, 0.5)).build();
    LogitBias.apply(SamplingParameters.of(options, 0, -1), logits);
    assertThat(logits).containsExactly(-1.5f, 2, 3.5f, Float.NEGATIVE_INFINITY);
  }
}
