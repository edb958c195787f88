package dev.lily.engine.bench;

import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;

/**
 * Measures what a machine can do at most: bytes read from memory and fp32 multiply-adds, on a
 * number of threads. Other benchmarks give their results as a share of these.
 */
public final class MachineBench {
  // Rounds are short, so that on a shared machine some have it to themselves.
  private static final int ROUNDS = 201;
  private static final int WARM_UP_ROUNDS = 50;

  /** Longs of each thread: far more than caches hold. Each round reads the next slice of them. */
  private static final int READ_LONGS = 1 << 24;

  private static final int SLICE_LONGS = 1 << 20;

  /** Floats that stay in the first-level cache. */
  private static final int FMA_FLOATS = 4096;

  private static final int FMA_REPEATS = 2_400;
  private static final int FMAS_PER_FLOAT = 4;

  // A result that the compiler must not remove.
  private static volatile double sink;

  private MachineBench() {}

  /**
   * What was measured: the median and the best of several rounds.
   *
   * @param readGigabytes a second, 10⁹ bytes
   * @param gigaflops fp32, an addition and a multiplication counted as two
   */
  record Ceiling(
      int threads,
      double readGigabytes,
      double bestReadGigabytes,
      double gigaflops,
      double bestGigaflops) {}

  private interface Work {
    /** Does the work of one thread; the result depends on all of it. */
    double run(int thread, int round);
  }

  /** Arguments: numbers of threads; 1 and all processors if there are none. */
  public static void main(String[] arguments) {
    int[] threads =
        arguments.length > 0
            ? Arrays.stream(arguments).mapToInt(Integer::parseInt).toArray()
            : new int[] {1, Runtime.getRuntime().availableProcessors()};
    System.out.printf(
        "%7s %18s %8s %18s %8s%n",
        "threads", "read GB/s, median", "best", "GFLOP/s, median", "best");
    for (int count : threads) {
      Ceiling c = measure(count);
      System.out.printf(
          Locale.ROOT,
          "%7d %18.1f %8.1f %18.1f %8.1f%n",
          c.threads,
          c.readGigabytes,
          c.bestReadGigabytes,
          c.gigaflops,
          c.bestGigaflops);
    }
  }

  static Ceiling measure(int threads) {
    long[][] data = new long[threads][READ_LONGS];
    for (long[] array : data) {
      Arrays.fill(array, 1);
    }
    double[] read =
        seconds(threads, (thread, round) -> sum(data[thread], round * SLICE_LONGS % READ_LONGS));
    float[][] values = new float[threads][FMA_FLOATS];
    double[] fma = seconds(threads, (thread, round) -> multiplyAdd(values[thread]));
    double bytes = (double) threads * SLICE_LONGS * Long.BYTES;
    double flops = 2.0 * threads * FMA_FLOATS * FMA_REPEATS * FMAS_PER_FLOAT;
    return new Ceiling(
        threads,
        bytes / read[ROUNDS / 2] / 1e9,
        bytes / read[0] / 1e9,
        flops / fma[ROUNDS / 2] / 1e9,
        flops / fma[0] / 1e9);
  }

  /** Sorted durations of rounds in which all threads start together. */
  private static double[] seconds(int threads, Work work) {
    int rounds = WARM_UP_ROUNDS + ROUNDS;
    long[][] starts = new long[threads][rounds];
    long[][] ends = new long[threads][rounds];
    CyclicBarrier barrier = new CyclicBarrier(threads);
    Thread[] workers = new Thread[threads];
    for (int t = 0; t < threads; t++) {
      int thread = t;
      workers[t] =
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int round = 0; round < rounds; round++) {
                      await(barrier);
                      starts[thread][round] = System.nanoTime();
                      sink = work.run(thread, round);
                      ends[thread][round] = System.nanoTime();
                    }
                  });
    }
    for (Thread worker : workers) {
      join(worker);
    }
    double[] seconds = new double[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
      int r = round + WARM_UP_ROUNDS;
      long first = Arrays.stream(starts).mapToLong(row -> row[r]).min().orElseThrow();
      long last = Arrays.stream(ends).mapToLong(row -> row[r]).max().orElseThrow();
      seconds[round] = (last - first) / 1e9;
    }
    Arrays.sort(seconds);
    return seconds;
  }

  private static void await(CyclicBarrier barrier) {
    try {
      barrier.await();
    } catch (InterruptedException | BrokenBarrierException e) {
      throw new IllegalStateException("A measuring thread was stopped", e);
    }
  }

  private static void join(Thread worker) {
    try {
      worker.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException("The measurement was stopped", e);
    }
  }

  private static double sum(long[] data, int from) {
    long sum = 0;
    for (int i = from; i < from + SLICE_LONGS; i++) {
      sum += data[i];
    }
    return sum;
  }

  private static double multiplyAdd(float[] values) {
    for (int repeat = 0; repeat < FMA_REPEATS; repeat++) {
      multiplyAddOnce(values, 0.5f, 0.001f);
    }
    return values[0];
  }

  /** {@value #FMAS_PER_FLOAT} dependent multiply-adds to each element, elements side by side. */
  private static void multiplyAddOnce(float[] values, float factor, float term) {
    for (int i = 0; i < values.length; i++) {
      float v = values[i];
      v = Math.fma(factor, term, v);
      v = Math.fma(factor, term, v);
      v = Math.fma(factor, term, v);
      v = Math.fma(factor, term, v);
      values[i] = v;
    }
  }
}
