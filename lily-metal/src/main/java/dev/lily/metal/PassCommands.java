package dev.lily.metal;

import dev.lily.metal.device.CommandBuffer;
import dev.lily.metal.device.CommandQueue;
import dev.lily.metal.device.ComputeEncoder;
import dev.lily.metal.device.DispatchList;
import dev.lily.metal.device.DispatchType;
import dev.lily.metal.device.MetalException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The command buffers of one pass: one for a decode step, as many as its work asks for otherwise.
 * The queue runs them in the order of their commits, and Metal tracks what they write, so a buffer
 * sees all that those before it wrote; no barrier is needed between them. Each one's outcome is
 * read.
 */
final class PassCommands {
  /** Most command buffers of a pass that have not completed. */
  static final int MAX_OPEN = 8;

  private final CommandQueue queue;
  private final WorkBudget budget;
  private final List<CommandBuffer> buffers = new ArrayList<>();
  private final double[] work = new double[MAX_OPEN];
  private int numCommitted;
  private int numAwaited;
  private double gpuSeconds;
  private @Nullable MetalException failure;

  PassCommands(CommandQueue queue, WorkBudget budget) {
    this.queue = queue;
    this.budget = budget;
    buffers.add(queue.commandBuffer());
  }

  /** Makes ready for a new pass; all of the last one must have been awaited. */
  void begin() {
    numCommitted = 0;
    numAwaited = 0;
    gpuSeconds = 0;
    failure = null;
  }

  /**
   * Hands dispatches to the GPU. Waits for the oldest command buffer of this pass if too many have
   * not completed.
   *
   * @param newWork operations, for the estimate of later buffers; 0 not to take account of it
   * @throws MetalException if an earlier command buffer of this pass failed, or Metal gives none
   */
  void commit(DispatchList dispatches, double newWork) {
    if (numCommitted - numAwaited == MAX_OPEN) {
      awaitOldest();
    }
    if (failure != null) {
      throw failure;
    }
    CommandBuffer buffer = next();
    buffer.begin();
    try {
      ComputeEncoder encoder = buffer.encoder(DispatchType.CONCURRENT);
      encoder.encode(dispatches);
      encoder.end();
      buffer.commit();
    } catch (RuntimeException | Error e) {
      buffer.discard();
      throw e;
    }
    work[numCommitted % MAX_OPEN] = newWork;
    numCommitted++;
  }

  private CommandBuffer next() {
    int index = numCommitted % MAX_OPEN;
    if (index == buffers.size()) {
      buffers.add(queue.commandBuffer());
    }
    return buffers.get(index);
  }

  private void awaitOldest() {
    int index = numAwaited++ % MAX_OPEN;
    CommandBuffer buffer = buffers.get(index);
    try {
      buffer.await();
      gpuSeconds += buffer.gpuSeconds();
      if (work[index] > 0) {
        budget.measured(work[index], buffer.gpuSeconds());
      }
    } catch (MetalException e) {
      if (failure == null) {
        failure = e; // what ran after it is of no use, and fails for its sake
      }
    }
  }

  /**
   * Waits for all of them.
   *
   * @return the first failure
   */
  @Nullable MetalException await() {
    while (numAwaited < numCommitted) {
      awaitOldest();
    }
    return failure;
  }

  /** Command buffers of the pass so far. */
  int size() {
    return numCommitted;
  }

  /** Time the GPU spent on those that were awaited. */
  double gpuSeconds() {
    return gpuSeconds;
  }

  /** Waits, and gives them up. */
  void close() {
    await();
    buffers.forEach(CommandBuffer::close);
  }
}
