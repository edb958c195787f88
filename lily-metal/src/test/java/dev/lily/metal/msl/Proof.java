package dev.lily.metal.msl;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Checks of kernels at a model's shapes: runs them on fresh random data, compares with double
 * precision, and keeps a line for each.
 *
 * <p>The error of a result is the norm of its difference from the reference over the norm of the
 * reference, and next to it the largest difference over the largest value. Both must stay within
 * the limit; NaN, with which outputs are filled before, never does.
 */
final class Proof {
  /** How large the shapes are. */
  enum Scale {
    /** Little of everything, for the run on the processor. */
    SMOKE,
    /** The model's widths, but fewer outputs and rows: for tools that slow kernels down. */
    SANITIZER,
    /** The model's shapes. */
    REAL
  }

  /** Sums of fp32 in another order than the reference's. */
  static final double FP32 = 1e-6;

  /** A bf16 result: half a unit in the last place is up to 2^-8 of the value; and a little. */
  static final double BF16 = 0x1.02p-8;

  /**
   * Products of weights that prefill rounds to bf16, summed in fp32: below the weights' own 2^-8.
   */
  static final double BF16_WEIGHTS = 0x1p-8;

  /** The same, rounded to bf16 at the end. */
  static final double BF16_TWICE = 1.5 * 0x1p-8;

  private final CpuKernels kernels;
  private final Scale scale;
  private final SplittableRandom random;
  private final List<String> failures = new ArrayList<>();
  private final Set<String> dispatched = new TreeSet<>();
  private int checks;

  Proof(CpuKernels kernels, Scale scale, long seed) {
    this.kernels = kernels;
    this.scale = scale;
    random = new SplittableRandom(seed);
    System.out.printf(Locale.ROOT, "seed %d, scale %s%n", seed, scale);
    System.out.printf("%-28s %-34s %10s %10s %10s%n", "kernel", "shape", "error", "max", "limit");
  }

  CpuKernels kernels() {
    return kernels;
  }

  int checks() {
    return checks;
  }

  List<String> failures() {
    return failures;
  }

  /** One of three sizes, by the scale. */
  int pick(int smoke, int sanitizer, int real) {
    return switch (scale) {
      case SMOKE -> smoke;
      case SANITIZER -> sanitizer;
      case REAL -> real;
    };
  }

  Scale scale() {
    return scale;
  }

  boolean isSmoke() {
    return scale == Scale.SMOKE;
  }

  /** Names of the kernels that ran. */
  Set<String> dispatched() {
    return dispatched;
  }

  void dispatch(String kernel, Geometry geometry, MemorySegment... buffers) {
    dispatched.add(kernel);
    kernels.dispatch(kernel, geometry, buffers);
  }

  int below(int bound) {
    return random.nextInt(bound);
  }

  long bits() {
    return random.nextLong();
  }

  float[] uniform(int count, double low, double high) {
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) (low + (high - low) * (random.nextInt() >>> 8) * 0x1p-24);
    }
    return values;
  }

  /** Values that bf16 holds. */
  float[] uniformBf16(int count, double low, double high) {
    float[] values = uniform(count, low, high);
    for (int i = 0; i < count; i++) {
      values[i] = Data.toBf16(values[i]);
    }
    return values;
  }

  /** Up to {@code count} different numbers below {@code bound}, ascending, with both ends. */
  int[] sample(int bound, int count) {
    if (count >= bound) {
      return IntStream.range(0, bound).toArray();
    }
    return IntStream.concat(
            IntStream.of(0, bound - 1), IntStream.generate(() -> random.nextInt(bound)))
        .distinct()
        .limit(count)
        .sorted()
        .toArray();
  }

  void check(String kernel, String shape, float[] actual, double[] expected, double limit) {
    double squares = 0;
    double difference = 0;
    double largest = 0;
    double most = 0;
    for (int i = 0; i < expected.length; i++) {
      double off = actual[i] - expected[i];
      squares += expected[i] * expected[i];
      difference += off * off;
      largest = Math.max(largest, Math.abs(expected[i]));
      most = Math.max(most, Math.abs(off)); // NaN stays
    }
    double error = Math.sqrt(difference / squares);
    double max = most / largest;
    boolean passed = actual.length == expected.length && error <= limit && max <= limit;
    String line =
        String.format(
            Locale.ROOT, "%-28s %-34s %10.2e %10.2e %10.2e", kernel, shape, error, max, limit);
    record(passed, line);
  }

  /** A result that has to be exact. */
  void checkExact(String kernel, String shape, boolean passed) {
    record(
        passed, String.format("%-28s %-34s %10s", kernel, shape, passed ? "exact" : "not exact"));
  }

  /** That a kernel wrote all of an output. */
  void checkWritten(String kernel, float[] output) {
    for (float value : output) {
      if (Float.isNaN(value)) {
        record(false, kernel + ": a value is NaN or was not written");
        return;
      }
    }
  }

  /** A family that ended before its end: a dispatch failed. */
  void fail(String family, AssertionError error) {
    record(false, family + ": " + error.getMessage());
  }

  private void record(boolean passed, String line) {
    checks++;
    System.out.println(passed ? line : line + "  FAILED");
    if (!passed) {
      failures.add(line);
    }
  }
}
