package dev.lily.metal;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.StateLayout;
import dev.lily.metal.device.CommandQueue;
import dev.lily.metal.device.MetalBuffer;
import dev.lily.metal.device.MetalException;
import dev.lily.metal.kernel.DeviceMemory;
import dev.lily.metal.kernel.DevicePlan;
import dev.lily.metal.kernel.ElementType;
import dev.lily.metal.kernel.MetalTensor;
import dev.lily.metal.kernel.Recording;
import dev.lily.metal.kernel.Region;
import dev.lily.metal.kernel.SamplingKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One of the two passes that may be in flight: its command buffers, its plan and its results on the
 * device, and the decode steps recorded over them. Used again for the pass after the next.
 */
final class MetalPendingPass implements PendingPass {
  private static final int FIRST_TOP = 6;
  private static final int FIRST_TOP_LOGIT = 26;
  private static final double ONE = 0x1p40;

  private enum Phase {
    IDLE,
    RECORDING,
    SUBMITTED
  }

  private record CopyOut(
      MetalBuffer buffer,
      ElementType type,
      MetalTensor.RowOrder order,
      int columns,
      int firstRow,
      int numRows,
      float[] destination) {}

  private final DeviceMemory memory;
  private final PassCommands commands;
  private final Recording recording;
  private final @Nullable RecordedStep[] steps;
  private final DevicePlan plan;
  private final Region results;
  private final MemorySegment words;
  private final int[] resultOf;
  private final boolean[] hasLogprobs;
  private final List<CopyOut> copies = new ArrayList<>();
  private Phase phase = Phase.IDLE;
  private @Nullable MetalException failure;
  private int numPlanRows;
  private int numLogitRows;
  private long deviceNanos;

  MetalPendingPass(
      DeviceMemory memory,
      CommandQueue queue,
      WorkBudget budget,
      StateLayout layout,
      PassLimits limits) {
    this.memory = memory;
    commands = new PassCommands(queue, budget);
    recording = new Recording(memory);
    steps = new RecordedStep[limits.maxSequences() + 1];
    plan = new DevicePlan(memory, layout, limits);
    results = new Region(memory.allocatePoisoned(resultBytes(limits)));
    words = results.buffer().contents();
    resultOf = new int[limits.maxLogitRows()];
    hasLogprobs = new boolean[limits.maxLogitRows()];
  }

  /** Bytes of the results of a pass. */
  static long resultBytes(PassLimits limits) {
    return (long) limits.maxLogitRows() * SamplingKernels.RESULT_WORDS * Integer.BYTES;
  }

  PassCommands commands() {
    return commands;
  }

  /** What passes record into that are not kept. */
  Recording recording() {
    return recording;
  }

  /** The decode step of so many rows. */
  RecordedStep step(int rows) {
    RecordedStep step = steps[rows];
    if (step == null) {
      step = new RecordedStep(memory);
      memory.commit();
      steps[rows] = step;
    }
    return step;
  }

  DevicePlan plan() {
    return plan;
  }

  Region results() {
    return results;
  }

  /** Makes ready for a new pass. */
  void begin(int planRows, int logitRows) {
    if (phase == Phase.SUBMITTED) {
      throw new BackendException(
          "Beginning a pass: two are in flight, the most there may be; await one first");
    }
    discard();
    commands.begin();
    failure = null;
    deviceNanos = 0;
    numPlanRows = planRows;
    numLogitRows = logitRows;
    Arrays.fill(resultOf, -1);
    Arrays.fill(hasLogprobs, false);
    phase = Phase.RECORDING;
  }

  boolean isRecording() {
    return phase == Phase.RECORDING;
  }

  /** Drops a pass that is being recorded; waits for what it has handed to the device already. */
  void discard() {
    if (phase == Phase.RECORDING) {
      commands.await();
      phase = Phase.IDLE;
    }
    releaseCopies();
  }

  /** The last of the pass was handed to the device. */
  void submitted() {
    phase = Phase.SUBMITTED;
  }

  /** Notes where the result of a row that needs logits will be. */
  void sampled(int logitRow, int result, boolean reportsLogprobs) {
    resultOf[logitRow] = result;
    hasLogprobs[logitRow] = reportsLogprobs;
  }

  /** A buffer for a copy of a tensor that is to be read when the pass has run. */
  MetalBuffer copyOut(MetalTensor source, int firstRow, int numRows, float[] destination) {
    MetalBuffer buffer = memory.allocate(bytes(source));
    memory.commit();
    copies.add(
        new CopyOut(
            buffer,
            source.type(),
            source.order(),
            source.columns(),
            firstRow,
            numRows,
            destination));
    return buffer;
  }

  static long bytes(MetalTensor tensor) {
    return MetalTensor.bytes(tensor.rows(), tensor.columns(), tensor.type());
  }

  /** Waits for the device, and keeps its error for {@link #await}. */
  void complete() {
    if (phase != Phase.SUBMITTED) {
      return;
    }
    phase = Phase.IDLE;
    failure = commands.await();
    if (failure == null) {
      deviceNanos = Math.max(1, Math.round(commands.gpuSeconds() * 1e9));
      readCopies();
    }
    releaseCopies();
  }

  private void readCopies() {
    for (int c = 0; c < copies.size(); c++) { // without an iterator: passes allocate nothing
      CopyOut copy = copies.get(c);
      for (int i = 0; i < copy.numRows; i++) {
        int row = deviceRow(copy.order, copy.firstRow + i);
        MetalTensor.read(
            copy.buffer,
            copy.type,
            (long) row * copy.columns,
            copy.destination,
            i * copy.columns,
            copy.columns);
      }
    }
  }

  private int deviceRow(MetalTensor.RowOrder order, int row) {
    return switch (order) {
      case PLAN -> row < numPlanRows ? plan.deviceRow(row) : row;
      case LOGITS -> row < numLogitRows ? plan.deviceLogit(row) : row;
    };
  }

  private void releaseCopies() {
    for (int c = 0; c < copies.size(); c++) {
      memory.release(copies.get(c).buffer);
    }
    copies.clear();
  }

  @Override
  public void await() {
    complete();
    if (failure != null) {
      throw failure;
    }
  }

  private int word(int index, int word) {
    return words.getAtIndex(JAVA_INT, (long) resultOf[index] * SamplingKernels.RESULT_WORDS + word);
  }

  private float logprob(int index, float logit) {
    long at = (long) resultOf[index] * SamplingKernels.RESULT_WORDS * Integer.BYTES;
    float largest = words.get(JAVA_FLOAT, at + 2 * Integer.BYTES);
    long sum = words.get(JAVA_LONG_UNALIGNED, at + 3 * Integer.BYTES);
    double difference = logit == largest ? 0 : (double) logit - largest;
    return (float) (difference - Math.log(sum / ONE));
  }

  @Override
  public int token(int index) {
    return resultOf[index] < 0 ? -1 : word(index, 0);
  }

  @Override
  public float logprob(int index) {
    return hasLogprobs[index] && token(index) >= 0
        ? logprob(index, Float.intBitsToFloat(word(index, 1)))
        : Float.NaN;
  }

  @Override
  public int numTopLogprobs(int index) {
    return hasLogprobs[index] && token(index) >= 0 ? word(index, 5) : 0;
  }

  @Override
  public int topToken(int index, int rank) {
    return word(index, FIRST_TOP + Objects.checkIndex(rank, numTopLogprobs(index)));
  }

  @Override
  public float topLogprob(int index, int rank) {
    int at = FIRST_TOP_LOGIT + Objects.checkIndex(rank, numTopLogprobs(index));
    return logprob(index, Float.intBitsToFloat(word(index, at)));
  }

  @Override
  public long deviceNanos() {
    return deviceNanos;
  }

  /** Waits, and gives the memory back. */
  void close() {
    discard();
    complete();
    commands.close();
    recording.release();
    for (RecordedStep step : steps) {
      if (step != null) {
        step.release();
      }
    }
    plan.release(memory);
    memory.release(results.buffer());
  }
}
