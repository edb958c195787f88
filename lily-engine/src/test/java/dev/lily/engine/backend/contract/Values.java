package dev.lily.engine.backend.contract;

import java.util.SplittableRandom;

/** Random numbers that bf16 holds exactly, so that no back end has to round its inputs. */
final class Values {
  private final SplittableRandom random;

  Values(long seed) {
    random = new SplittableRandom(seed);
  }

  static float bf16(double value) {
    return Float.intBitsToFloat(Float.floatToRawIntBits((float) value) & 0xffff0000);
  }

  float uniform(double from, double to) {
    return bf16(random.nextDouble(from, to));
  }

  float[] uniform(int count, double from, double to) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = uniform(from, to);
    }
    return values;
  }

  /** Magnitudes over many powers of two, both signs, and some zeros. */
  float[] extreme(int count, int maxExponent) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      double magnitude =
          Math.scalb(random.nextDouble(1, 2), random.nextInt(-maxExponent, maxExponent));
      values[i] = i % 7 == 3 ? 0 : bf16(random.nextBoolean() ? magnitude : -magnitude);
    }
    return values;
  }

  int below(int bound) {
    return random.nextInt(bound);
  }

  int[] tokens(int count, int bound) {
    return random.ints(count, 0, bound).toArray();
  }
}
