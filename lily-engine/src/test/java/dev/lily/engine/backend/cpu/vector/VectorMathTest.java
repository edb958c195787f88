package dev.lily.engine.backend.cpu.vector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

@EnabledIf(
    value = "dev.lily.engine.backend.cpu.KernelPaths#hasVector",
    disabledReason = "jdk.incubator.vector is not in this JVM")
class VectorMathTest {
  @Test
  void evaluatesTheExponentialToTheLastBits() {
    SplittableRandom random = new SplittableRandom(1);
    float[] x = new float[4099];
    for (int i = 0; i < x.length; i++) {
      x[i] = (float) (i % 2 == 0 ? random.nextDouble(-86.9, 87.9) : random.nextDouble(-2, 2));
    }
    x[0] = 0;
    x[1] = -0f;
    x[2] = Float.MIN_VALUE;
    x[3] = (float) (Math.log(2) / 2);
    float[] out = new float[x.length + 3];
    VectorMath.exp(x, 0, 1, 0, out, 3, x.length);
    assertThat(out[3]).isEqualTo(1);
    for (int i = 0; i < x.length; i++) {
      double exact = Math.exp(x[i]);
      assertThat(Math.abs(out[i + 3] - exact)).as("e^%s", x[i]).isLessThan(2e-7 * exact);
    }
  }

  @Test
  void endsAtTinyAndHugePowersOutsideTheRange() {
    float[] x = {
      -1e30f, -1000, Float.NEGATIVE_INFINITY, -88, 89, 1000, 1e30f, Float.POSITIVE_INFINITY,
      -1e30f, -1000, Float.NEGATIVE_INFINITY, -88, 89, 1000, 1e30f, Float.POSITIVE_INFINITY,
    };
    float[] out = new float[x.length];
    VectorMath.exp(x, 0, 1, 0, out, 0, x.length);
    for (int i = 0; i < x.length; i++) {
      if (x[i] < 0) {
        assertThat(out[i]).isBetween(0f, 2e-38f);
      } else {
        assertThat(out[i]).isGreaterThan(1.6e38f);
      }
    }
  }

  @Test
  void evaluatesSiluOfEveryMagnitude() {
    SplittableRandom random = new SplittableRandom(2);
    float[] x = new float[2049];
    for (int i = 0; i < x.length; i++) {
      x[i] = (float) random.nextDouble(-40, 40);
    }
    x[0] = -200;
    x[1] = 200;
    x[2] = 0;
    float[] out = x.clone();
    VectorMath.silu(out, 0, out, 0, out.length);
    for (int i = 0; i < x.length; i++) {
      double exact = x[i] / (1 + Math.exp(-x[i]));
      assertThat(Math.abs(out[i] - exact))
          .as("silu(%s)", x[i])
          .isLessThanOrEqualTo(4e-7 * Math.abs(exact) + 1e-35);
    }
  }

  @Test
  void takesMaximaAndSumsOfWholeVectors() {
    float[] x = new float[Lanes.LANES * 3 + 5];
    for (int i = 0; i < x.length; i++) {
      x[i] = -i;
    }
    x[5 + Lanes.LANES] = 7;
    assertThat(VectorMath.max(x, 5, 3 * Lanes.LANES)).isEqualTo(7);
    float[] sums = new float[Lanes.LANES + 1];
    VectorMath.sums(x, 5, 3 * Lanes.LANES, sums, 1);
    assertThat(sums[1]).isEqualTo(-5 + 7 - (5 + 2 * Lanes.LANES));
    assertThat(sums[2]).isEqualTo(-6 - (6 + Lanes.LANES) - (6 + 2 * Lanes.LANES));
  }

  @Test
  void addsUpLanesInOneOrder() {
    float[] v = new float[Lanes.LANES + 2];
    float exact = 0;
    for (int i = 0; i < Lanes.LANES; i++) {
      v[i + 2] = i + 0.5f;
      exact += i + 0.5f;
    }
    assertThat(Lanes.sum(v, 2)).isEqualTo(exact);
  }
}
