package dev.lily.engine.generation;

import java.util.Arrays;

/** The median of the last few values, so that outliers count for nothing. */
final class RecentMedian {
  static final int WINDOW = 8;

  private final double[] values = new double[WINDOW];
  private final double[] sorted = new double[WINDOW];
  private int added;
  private double median = Double.NaN;

  void add(double value) {
    values[added++ % WINDOW] = value;
    int size = size();
    System.arraycopy(values, 0, sorted, 0, size);
    Arrays.sort(sorted, 0, size);
    median = (sorted[(size - 1) / 2] + sorted[size / 2]) / 2;
    if (added == 2 * WINDOW) {
      added = WINDOW;
    }
  }

  /** How many values it is of. */
  int size() {
    return Math.min(added, WINDOW);
  }

  /** NaN before the first value. */
  double value() {
    return median;
  }
}
