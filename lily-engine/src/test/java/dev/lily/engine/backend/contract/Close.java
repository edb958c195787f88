package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;

/** Comparison of fp32 results with the exact ones. */
final class Close {
  private Close() {}

  /** Each value within {@code tolerance} times its magnitude. */
  static void each(float[] actual, double[] expected, double[] magnitude, double tolerance) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int i = 0; i < actual.length; i++) {
      double allowed = tolerance * magnitude[i] + Float.MIN_NORMAL;
      if (!(Math.abs(actual[i] - expected[i]) <= allowed)) {
        throw new AssertionError(
            "Value %d is %s, not %s, which may differ by %s"
                .formatted(i, actual[i], expected[i], allowed));
      }
    }
  }

  /** All values within {@code tolerance} times the largest. */
  static void all(float[] actual, double[] expected, double tolerance) {
    double[] magnitude = new double[expected.length];
    double largest = 0;
    for (double value : expected) {
      largest = Math.max(largest, Math.abs(value));
    }
    java.util.Arrays.fill(magnitude, largest);
    each(actual, expected, magnitude, tolerance);
  }

  static double[] doubles(float[] values, int from, int count) {
    double[] out = new double[count];
    for (int i = 0; i < count; i++) {
      out[i] = values[from + i];
    }
    return out;
  }
}
