package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.TensorUse;
import dev.lily.engine.backend.cpu.kernel.AffineMatrix;
import dev.lily.engine.backend.cpu.kernel.CpuKernels;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.CpuTensor;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * The processor as a device. 4-bit weights are packed into native memory if the kernels want them
 * so and there is room, others stay in the checkpoint's mapping. Activations are fp32 arrays on the
 * heap; pages and recurrent slots lie in native memory.
 */
final class CpuBackend implements Backend {
  private final CpuKernels kernels;
  private final WorkerPool pool;
  private final DeviceInfo device;
  private final boolean isPoisoned;
  private final List<CpuState> states = new ArrayList<>();
  private final WeightPlacement placement;
  private final WeightPacker packer;
  private boolean packs;
  private long expectedBytes;
  private int widestMatrix;

  /**
   * @param isPoisoned for tests: whether pages and slots start as NaN
   */
  CpuBackend(
      CpuKernels kernels,
      int threads,
      WeightPlacement placement,
      DeviceInfo device,
      boolean isPoisoned) {
    this.kernels = kernels;
    this.device = device;
    this.isPoisoned = isPoisoned;
    this.placement = placement;
    packs = placement.packs(0, device.memoryBudgetBytes());
    pool = new WorkerPool(threads);
    packer = new WeightPacker(pool);
  }

  @Override
  public String id() {
    return CpuBackendProvider.ID;
  }

  @Override
  public DeviceInfo device() {
    return packer.bytes() == 0
        ? device
        : new DeviceInfo(
            device.name(), device.detail() + ", packed weights", device.memoryBudgetBytes());
  }

  @Override
  public int maxPassesInFlight() {
    return 1;
  }

  @Override
  public void mapWeights(MemorySegment file) {
    // Slices of the mapping are read where they lie.
  }

  @Override
  public Matrix matrix(MatrixSource source) {
    widestMatrix = Math.max(widestMatrix, source.columns());
    CpuMatrix matrix = CpuMatrix.of(source);
    return packs && matrix instanceof AffineMatrix affine
        ? packer.pack(affine, expectedBytes)
        : matrix;
  }

  @Override
  public Matrix embedding(MatrixSource source) {
    // Few rows of it are ever read.
    widestMatrix = Math.max(widestMatrix, source.columns());
    return CpuMatrix.of(source);
  }

  @Override
  public Set<KeyValueType> keyValueTypes() {
    return EnumSet.allOf(KeyValueType.class);
  }

  @Override
  public long weightBytes(long tensorBytes, long fileBytes) {
    expectedBytes = tensorBytes;
    packs = placement.packs(tensorBytes, device.memoryBudgetBytes());
    return tensorBytes;
  }

  @Override
  public Tensor constant(float... values) {
    return new CpuTensor(values.clone(), 1, values.length);
  }

  @Override
  public Tensor tensor(int rows, int columns) {
    try {
      return new CpuTensor(Compute.scratch((long) rows * columns), rows, columns);
    } catch (OutOfMemoryError | ArithmeticException e) {
      throw new BackendException(
          "A tensor [%d, %d] of fp32 does not fit the Java heap of %d MiB; raise -Xmx, or lower the prefill chunk or the sessions"
              .formatted(rows, columns, Runtime.getRuntime().maxMemory() >> 20),
          e);
    }
  }

  @Override
  public long tensorBytes(TensorUse use, int rows, int columns) {
    return (long) rows * columns * Float.BYTES;
  }

  @Override
  public long stateBytes(StateLayout layout) {
    return CpuState.bytes(layout);
  }

  @Override
  public long workspaceBytes(StateLayout layout, ModelShape shape, PassLimits limits) {
    int columns = maxColumns(shape);
    long elements =
        RowArrangement.scratchElements(limits.maxRows(), columns)
            + limits.maxRows() * ExpertsStep.elementsPerRow(shape)
            + AttendStep.sharedElements(layout, shape, limits)
            + pool.numWorkers()
                * (kernels.matmul().tileSize(columns)
                    + DeltaUnit.elements(layout)
                    + AttendStep.elementsPerWorker(shape))
            + SampleStep.elements(layout, pool.numWorkers());
    return elements * Float.BYTES;
  }

  private int maxColumns(ModelShape shape) {
    int columns = Math.max(widestMatrix, shape.hiddenSize());
    columns = Math.max(columns, shape.numAttentionHeads() * shape.headDim());
    columns = Math.max(columns, shape.valueDim());
    columns = Math.max(columns, shape.moeIntermediateSize());
    return Math.max(columns, shape.sharedIntermediateSize());
  }

  @Override
  public DeviceState openState(StateLayout layout, ModelShape shape, PassLimits limits) {
    packer.finish();
    try {
      Compute compute = new Compute(kernels, pool, maxColumns(shape), limits.maxRows());
      CpuState state = new CpuState(compute, layout, shape, limits, isPoisoned);
      states.add(state);
      return state;
    } catch (OutOfMemoryError | ArithmeticException e) {
      throw new BackendException(
          "State of %d MiB with scratch of %d MiB does not fit: %s. Lower the context length, the sessions or the prefill chunk, or raise -Xmx"
              .formatted(
                  stateBytes(layout) >> 20,
                  workspaceBytes(layout, shape, limits) >> 20,
                  e.getMessage()),
          e);
    }
  }

  @Override
  public ComputePass begin(RowPlan plan, DeviceState state) {
    if (state instanceof CpuState cpu) {
      return cpu.begin(plan);
    }
    throw new BackendException(
        "The CPU back end was given a " + state.getClass().getName() + "; it takes its own only");
  }

  @Override
  public void close() {
    states.forEach(CpuState::close);
    pool.close();
    packer.close();
  }
}
