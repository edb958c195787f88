package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputeEncoder;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.MetalBuffer;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Writes dispatches down: {@link #kernel}, then its arguments in the order of their indices, then
 * {@link #dispatch}. A barrier goes before a dispatch that uses what another one wrote, or writes
 * what another one used, since the last barrier; there are no others. Allocates nothing in steady
 * state.
 */
public final class KernelEncoder {
  private final @Nullable Region[] used = new Region[ComputeEncoder.NUM_BUFFER_INDICES];
  private final boolean[] written = new boolean[ComputeEncoder.NUM_BUFFER_INDICES];
  private @Nullable Recording recording;
  private RowPart part = RowPart.ALL;
  private long stretch;
  private int numUsed;
  private int threadgroupBytes;
  private boolean conflict;
  private int numDispatches;
  private int numBarriers;

  /** Starts a pass, in an empty recording. */
  public void open(Recording opened) {
    recording = opened;
    opened.clear();
    stretch++;
    numDispatches = 0;
    numBarriers = 0;
    clear();
  }

  /**
   * Goes on in an encoder of its own, before which all that was recorded so far was sent: nothing
   * of it needs a barrier any more. Its parameters stay where they are.
   */
  public void split() {
    recording().cut();
    stretch++;
  }

  /** Ends the pass. */
  public void end() {
    recording = null;
  }

  private Recording recording() {
    return Objects.requireNonNull(recording, "no pass is being recorded");
  }

  private void clear() {
    for (int i = 0; i < numUsed; i++) {
      used[i] = null;
    }
    numUsed = 0;
    threadgroupBytes = 0;
    conflict = false;
  }

  /** Begins a dispatch that works on all rows, or on none. */
  KernelEncoder kernel(ComputePipeline pipeline) {
    return kernel(pipeline, RowPart.ALL);
  }

  /** Begins a dispatch. */
  KernelEncoder kernel(ComputePipeline pipeline, RowPart rows) {
    clear();
    part = rows;
    recording().dispatches().begin(pipeline);
    recording().parameters().begin();
    return this;
  }

  /** Binds memory that nothing writes while passes run: weights, constants, the plan. */
  KernelEncoder constant(MetalBuffer buffer, long offset) {
    recording().dispatches().bind(buffer, offset);
    return this;
  }

  /** Binds memory that the kernel reads. */
  KernelEncoder read(Region region, long offset) {
    conflict |= region.isWritten(part, stretch);
    return use(region, offset, false);
  }

  KernelEncoder read(Region region) {
    return read(region, 0);
  }

  /** Binds memory that the kernel writes, and may read. */
  KernelEncoder write(Region region, long offset) {
    conflict |= region.isWritten(part, stretch) || region.isRead(part, stretch);
    return use(region, offset, true);
  }

  KernelEncoder write(Region region) {
    return write(region, 0);
  }

  private KernelEncoder use(Region region, long offset, boolean isWritten) {
    recording().dispatches().bind(region.buffer(), offset);
    used[numUsed] = region;
    written[numUsed++] = isWritten;
    return this;
  }

  /** Appends a field of the parameter struct. */
  KernelEncoder field(int value) {
    recording().parameters().field(value);
    return this;
  }

  KernelEncoder field(float value) {
    return field(Float.floatToRawIntBits(value));
  }

  /** Binds the parameter struct. */
  KernelEncoder parameters() {
    ParameterMemory parameters = recording().parameters();
    return constant(parameters.buffer(), parameters.take());
  }

  KernelEncoder threadgroupMemory(long bytes) {
    threadgroupBytes = Math.toIntExact(bytes);
    return this;
  }

  /** Runs the kernel on a grid of threadgroups. */
  void dispatch(long groupsX, long groupsY, long groupsZ, int threads) {
    add(groupsX, groupsY, groupsZ, threads);
  }

  /**
   * As {@link #dispatch}, with a threadgroup in x for each split of the longest decode sequence.
   */
  void dispatchSplits(DevicePlan plan, long groupsY, long groupsZ, int threads) {
    int splits = AttentionRoute.splits(plan.longestDecode());
    recording().splitsSequences(add(splits, groupsY, groupsZ, threads));
  }

  private int add(long groupsX, long groupsY, long groupsZ, int threads) {
    if (conflict) {
      stretch++;
      numBarriers++;
    }
    for (int i = 0; i < numUsed; i++) {
      Region region = Objects.requireNonNull(used[i]);
      if (written[i]) {
        region.noteWrite(part, stretch);
      } else {
        region.noteRead(part, stretch);
      }
    }
    numDispatches++;
    return recording()
        .dispatches()
        .dispatch(groupsX, groupsY, groupsZ, threads, threadgroupBytes, conflict);
  }

  /** Dispatches since {@link #open}. */
  public int numDispatches() {
    return numDispatches;
  }

  /** Barriers since {@link #open}. */
  public int numBarriers() {
    return numBarriers;
  }

  static int ceilDiv(int a, int b) {
    return (a + b - 1) / b;
  }
}
