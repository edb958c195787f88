package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

class AffineQuantizerPropertyTest {

  /** Groups of 64 values that span zero, or lie on one side of it. */
  @Provide
  Arbitrary<float[]> groups() {
    return Combinators.combine(Arbitraries.of(-1000f, -2f, -1f, 0f, 1f), Arbitraries.longs())
        .as(
            (low, seed) -> {
              Random random = new Random(seed);
              float[] values = new float[64];
              for (int i = 0; i < values.length; i++) {
                values[i] = low + 2 * random.nextFloat();
              }
              return values;
            });
  }

  @Property(tries = 300)
  void staysWithinOneStepOfTheInput(
      @ForAll("groups") float[] values, @ForAll @IntRange(min = 0, max = 1) int wide) {
    int bits = wide == 0 ? 4 : 8;
    float low = Float.POSITIVE_INFINITY;
    float high = Float.NEGATIVE_INFINITY;
    for (float value : values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    float step = (high - low) / ((1 << bits) - 1);
    float edge = Math.max(Math.abs(low), Math.abs(high));
    float bf16Error = (edge + (high - low)) / 256;

    float[] restored = AffineQuantizer.quantize(values, 64, bits).dequantize();

    for (int i = 0; i < values.length; i++) {
      assertThat(Math.abs(restored[i] - values[i])).isLessThanOrEqualTo(step + bf16Error + 1e-6f);
    }
  }

  @Property(tries = 300)
  void offsetsEachGroupByItsEndOfLargerMagnitudeOrNotAtAll(@ForAll("groups") float[] values) {
    float edge = 0;
    for (float value : values) {
      edge = Math.max(edge, Math.abs(value));
    }

    AffineGroups groups = AffineQuantizer.quantize(values, 64, 8);

    assertThat(Math.abs(Bf16.toFloat(groups.biases()[0])))
        .isIn(0f, Bf16.toFloat(Bf16.fromFloat(edge)));
  }
}
