package dev.lily.metal.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

class MetalGpuTest {
  @Test
  void isTheMachinesOwnOnAMacAndTheDoubleElsewhere() {
    assertThat(MetalGpu.chosen(null, "Mac OS X")).isEqualTo(MetalGpu.Kind.DEVICE);
    assertThat(MetalGpu.chosen("", "Linux")).isEqualTo(MetalGpu.Kind.DOUBLE);
  }

  @Test
  void isTheOneThatTheVariableNames() {
    assertThat(MetalGpu.chosen("double", "Mac OS X")).isEqualTo(MetalGpu.Kind.DOUBLE);
    assertThat(MetalGpu.chosen("device", "Linux")).isEqualTo(MetalGpu.Kind.DEVICE);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MetalGpu.chosen("gpu", "Linux"))
        .withMessageContaining("'device' or 'double'");
  }
}
