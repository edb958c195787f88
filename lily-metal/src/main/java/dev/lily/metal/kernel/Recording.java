package dev.lily.metal.kernel;

import dev.lily.metal.device.DispatchList;
import java.util.Arrays;

/**
 * Dispatches with their parameters, as {@link KernelEncoder} wrote them down. Used again when the
 * passes that were sent from it have completed.
 */
public final class Recording {
  private static final int FIRST_LENGTH_DISPATCHES = 16;

  private final DispatchList dispatches = new DispatchList();
  private final ParameterMemory parameters;
  private int[] lengthDispatches = new int[FIRST_LENGTH_DISPATCHES];
  private int numLengthDispatches;

  public Recording(DeviceMemory memory) {
    parameters = new ParameterMemory(memory);
  }

  /** Bytes of device memory that a recording takes at least. */
  public static long bytes() {
    return ParameterMemory.CHUNK_BYTES;
  }

  public DispatchList dispatches() {
    return dispatches;
  }

  ParameterMemory parameters() {
    return parameters;
  }

  void clear() {
    cut();
    parameters.clear();
  }

  /** Forgets the dispatches, which were sent, but not their parameters. */
  void cut() {
    dispatches.clear();
    numLengthDispatches = 0;
  }

  /** Notes that a dispatch has a threadgroup for each split of the longest sequence. */
  void splitsSequences(int dispatch) {
    if (numLengthDispatches == lengthDispatches.length) {
      lengthDispatches = Arrays.copyOf(lengthDispatches, 2 * numLengthDispatches);
    }
    lengthDispatches[numLengthDispatches++] = dispatch;
  }

  /**
   * Makes the grids those of another plan. All else that differs between plans of as many decode
   * rows lies in the plan's memory.
   */
  public void adapt(DevicePlan plan) {
    int splits = AttentionRoute.splits(plan.longestDecode());
    for (int i = 0; i < numLengthDispatches; i++) {
      dispatches.setGroups(lengthDispatches[i], splits);
    }
  }

  /** Gives the memory back. */
  public void release() {
    dispatches.close();
    parameters.release();
  }
}
