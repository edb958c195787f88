package dev.lily.metal;

import dev.lily.metal.kernel.DeviceMemory;
import dev.lily.metal.kernel.Recording;

/**
 * A decode step written down once, for all later ones of its shape: what they differ in (tokens,
 * positions, pages, slots) is read from the plan's memory, but for the grids that follow the
 * longest sequence.
 */
final class RecordedStep {
  private final DeviceMemory memory;
  private final Recording recording;
  private long numReleased;
  private int numLogitRows;
  private int numSampledRows;
  private boolean reportsLogprobs;
  private boolean isUsable;
  private int numDispatches;
  private int numBarriers;

  RecordedStep(DeviceMemory memory) {
    this.memory = memory;
    recording = new Recording(memory);
  }

  /** What to record into; unusable until {@link #keep}. */
  Recording record() {
    isUsable = false;
    return recording;
  }

  Recording recording() {
    return recording;
  }

  /** The recording is complete. */
  void keep(int logitRows, SampledRows sampled, int dispatches, int barriers) {
    numReleased = memory.numReleased();
    numLogitRows = logitRows;
    numSampledRows = sampled.count();
    reportsLogprobs = sampled.reportsLogprobs();
    numDispatches = dispatches;
    numBarriers = barriers;
    isUsable = true;
  }

  /** Whether a step of as many rows can run from it: all that it binds is still there. */
  boolean suits(int logitRows, SampledRows sampled) {
    return isUsable
        && numReleased == memory.numReleased()
        && numLogitRows == logitRows
        && numSampledRows == sampled.count()
        && reportsLogprobs == sampled.reportsLogprobs();
  }

  int numDispatches() {
    return numDispatches;
  }

  int numBarriers() {
    return numBarriers;
  }

  void release() {
    recording.release();
  }
}
