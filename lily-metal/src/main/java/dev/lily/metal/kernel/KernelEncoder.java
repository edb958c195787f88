package dev.lily.metal.kernel;

import dev.lily.metal.device.ComputeEncoder;
import dev.lily.metal.device.ComputePipeline;
import dev.lily.metal.device.MetalBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Records dispatches into a concurrent encoder: {@link #kernel}, then its arguments in the order of
 * their indices, then {@link #dispatch}. A barrier goes before a dispatch that uses what another
 * one wrote, or writes what another one used, since the last barrier; there are no others.
 * Allocates nothing.
 */
public final class KernelEncoder {
  private static final int PARAMETER_BYTES = 128;

  private final MemorySegment parameters;
  private final @Nullable Region[] used = new Region[ComputeEncoder.NUM_BUFFER_INDICES];
  private final boolean[] written = new boolean[ComputeEncoder.NUM_BUFFER_INDICES];
  private @Nullable ComputeEncoder encoder;
  private long stretch;
  private int numUsed;
  private int index;
  private int parameterBytes;
  private boolean conflict;
  private boolean hasThreadgroupMemory;
  private int numDispatches;
  private int numBarriers;

  /**
   * @param arena lives as long as this object
   */
  public KernelEncoder(Arena arena) {
    parameters = arena.allocate(PARAMETER_BYTES, 16);
  }

  /** Starts a pass. */
  public void open(ComputeEncoder opened) {
    encoder = opened;
    hasThreadgroupMemory = false;
    stretch++;
    numDispatches = 0;
    numBarriers = 0;
    clear();
  }

  /** Ends the pass's encoder. */
  public void end() {
    encoder().end();
    encoder = null;
  }

  private ComputeEncoder encoder() {
    return Objects.requireNonNull(encoder, "no pass is being recorded");
  }

  private void clear() {
    for (int i = 0; i < numUsed; i++) {
      used[i] = null;
    }
    numUsed = 0;
    index = 0;
    parameterBytes = 0;
    conflict = false;
  }

  /** Begins a dispatch. */
  KernelEncoder kernel(ComputePipeline pipeline) {
    clear();
    encoder().setPipeline(pipeline);
    return this;
  }

  /** Binds memory that nothing writes while passes run: weights, constants, the plan. */
  KernelEncoder constant(MetalBuffer buffer, long offset) {
    encoder().setBuffer(index++, buffer, offset);
    return this;
  }

  /** Binds memory that the kernel reads. */
  KernelEncoder read(Region region, long offset) {
    conflict |= region.lastWrite == stretch;
    return use(region, offset, false);
  }

  KernelEncoder read(Region region) {
    return read(region, 0);
  }

  /** Binds memory that the kernel writes, and may read. */
  KernelEncoder write(Region region, long offset) {
    conflict |= region.lastWrite == stretch || region.lastRead == stretch;
    return use(region, offset, true);
  }

  KernelEncoder write(Region region) {
    return write(region, 0);
  }

  private KernelEncoder use(Region region, long offset, boolean isWritten) {
    encoder().setBuffer(index++, region.buffer(), offset);
    used[numUsed] = region;
    written[numUsed++] = isWritten;
    return this;
  }

  /** Appends a field of the parameter struct. */
  KernelEncoder field(int value) {
    parameters.set(ValueLayout.JAVA_INT, parameterBytes, value);
    parameterBytes += Integer.BYTES;
    return this;
  }

  KernelEncoder field(float value) {
    return field(Float.floatToRawIntBits(value));
  }

  /** Binds the parameter struct. */
  KernelEncoder parameters() {
    encoder().setBytes(index++, parameters, 0, parameterBytes);
    return this;
  }

  KernelEncoder threadgroupMemory(long bytes) {
    encoder().setThreadgroupMemory(0, bytes);
    hasThreadgroupMemory = true;
    return this;
  }

  /** Runs the kernel on a grid of threadgroups. */
  void dispatch(long groupsX, long groupsY, long groupsZ, int threads) {
    if (conflict) {
      encoder().barrier();
      stretch++;
      numBarriers++;
    }
    for (int i = 0; i < numUsed; i++) {
      Region region = Objects.requireNonNull(used[i]);
      if (written[i]) {
        region.lastWrite = stretch;
      } else {
        region.lastRead = stretch;
      }
    }
    encoder().dispatch(groupsX, groupsY, groupsZ, threads, 1, 1);
    if (hasThreadgroupMemory) {
      encoder().setThreadgroupMemory(0, 0); // it would stay reserved for the kernels that follow
      hasThreadgroupMemory = false;
    }
    numDispatches++;
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
