package dev.lily.engine.backend;

import java.time.Duration;

/**
 * What a user may say about the device.
 *
 * @param threads compute threads of the CPU back end; 0 lets the back end choose
 * @param kernels kernel family of the CPU back end: {@code auto}, {@code vector} or {@code scalar}
 * @param weights where the CPU back end keeps 4-bit weights: {@code mapped}, as they are in the
 *     checkpoint; {@code packed}, a copy in memory in the layout of its fast kernels; {@code auto}
 *     packs if the kernels want it and at most three quarters of the memory go into it
 * @param gpuTime how long a GPU may work on one piece of a prefill: the screen waits as long, and
 *     the system ends what takes much longer
 * @param tensorOperations whether prefill goes through a GPU's tensor operations: {@code auto}
 *     where it has hardware for them, {@code always} wherever they compile, or {@code never}
 */
public record BackendOptions(
    int threads, String kernels, String weights, Duration gpuTime, String tensorOperations) {
  private static final Duration DEFAULT_GPU_TIME = Duration.ofMillis(100);

  /** The back end chooses. */
  public static final BackendOptions DEFAULT = new BackendOptions(0, "auto");

  public BackendOptions {
    if (threads < 0) {
      throw new BackendException("threads is " + threads + "; it must be 0 (automatic) or more");
    }
    if (!gpuTime.isPositive()) {
      throw new BackendException("gpuTime is " + gpuTime + "; it must be positive");
    }
  }

  /** With weights where the back end chooses. */
  public BackendOptions(int threads, String kernels, Duration gpuTime, String tensorOperations) {
    this(threads, kernels, "auto", gpuTime, tensorOperations);
  }

  /** With the GPU's defaults: a tenth of a second for a piece of a prefill. */
  public BackendOptions(int threads, String kernels) {
    this(threads, kernels, DEFAULT_GPU_TIME, "auto");
  }

  /** With other settings of the CPU back end. */
  public BackendOptions withCpu(int threads, String kernels, String weights) {
    return new BackendOptions(threads, kernels, weights, gpuTime, tensorOperations);
  }
}
