package dev.lily.metal;

import java.time.Duration;

/**
 * How much work one command buffer of a prefill may hold, so that it does not keep the GPU from the
 * display for longer than allowed: the system kills what does. Learns the GPU's speed from the
 * buffers that have run. Work is counted in operations, see {@link Work}.
 */
final class WorkBudget {
  /** Operations a second before anything was measured: less than any GPU that is supported does. */
  static final double FIRST_SPEED = 0.2e12;

  /** However slow a measurement was, a buffer may hold what this speed takes the time for. */
  static final double LEAST_SPEED = 0.05e12;

  /** Share of the budget below which a buffer's overhead would spoil the measurement. */
  private static final double LEAST_SHARE = 0.1;

  private static final double GAIN = 0.25;

  private final double seconds;
  private double speed = FIRST_SPEED;

  WorkBudget(Duration time) {
    seconds = time.toNanos() / 1e9;
  }

  /** Whether a command buffer with this work is to be submitted now. */
  boolean isSpent(double work) {
    return work >= operations();
  }

  /** Operations of a command buffer. */
  double operations() {
    return seconds * speed;
  }

  /** Takes account of a command buffer that has run: slower counts at once, faster by and by. */
  void measured(double work, double gpuSeconds) {
    if (gpuSeconds <= 0 || work < LEAST_SHARE * operations()) {
      return;
    }
    double measured = Math.max(LEAST_SPEED, work / gpuSeconds);
    speed = measured < speed ? measured : speed + GAIN * (measured - speed);
  }
}
