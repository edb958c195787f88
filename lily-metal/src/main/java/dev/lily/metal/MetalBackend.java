package dev.lily.metal;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.TensorUse;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import dev.lily.metal.device.CommandQueue;
import dev.lily.metal.device.GpuFamily;
import dev.lily.metal.device.MetalDevice;
import dev.lily.metal.kernel.DeviceMemory;
import dev.lily.metal.kernel.KernelEncoder;
import dev.lily.metal.kernel.KernelLibrary;
import dev.lily.metal.kernel.MatrixLoader;
import dev.lily.metal.kernel.MetalKernels;
import dev.lily.metal.kernel.MetalTensor;
import dev.lily.metal.kernel.TensorOperations;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * An Apple GPU. Weights stay in the checkpoint's mapping where their alignment allows it;
 * activations, pages and slots lie in memory that both processors reach.
 */
final class MetalBackend implements Backend {
  private static final int MAX_PASSES = 2;
  private static final long MEBIBYTE = 1 << 20;

  private final MetalDevice device;
  private final CommandQueue queue;
  private final DeviceMemory memory;
  private final MatrixLoader loader;
  private final MetalKernels kernels;
  private final DeviceInfo info;
  private final WorkBudget budget;

  private MetalBackend(MetalDevice device, BackendOptions options) {
    this.device = device;
    budget = new WorkBudget(options.gpuTime());
    KernelLibrary library =
        KernelLibrary.compile(device, TensorOperations.of(options.tensorOperations()));
    queue = device.queue(MAX_PASSES * PassCommands.MAX_OPEN);
    memory = new DeviceMemory(device, queue);
    loader = new MatrixLoader(memory);
    kernels =
        MetalKernels.of(library, new KernelEncoder(), memory, loader, device.maxThreadgroupBytes());
    info =
        new DeviceInfo(
            device.name(),
            "%s, %s, prefill by %s"
                .formatted(
                    family(device),
                    device.architecture(),
                    library.hasTensorOperations() ? "tensor operations" : "simdgroup_matrix"),
            device.recommendedMaxWorkingSetBytes());
  }

  /**
   * Opens the system's GPU and compiles the kernels.
   *
   * @throws dev.lily.metal.device.MetalException if there is none, or it refuses something
   */
  static MetalBackend open(BackendOptions options) {
    MetalDevice device = MetalDevice.open();
    try {
      return new MetalBackend(device, options);
    } catch (RuntimeException | Error e) {
      device.close();
      throw e;
    }
  }

  private static GpuFamily family(MetalDevice device) {
    for (GpuFamily family :
        new GpuFamily[] {GpuFamily.APPLE10, GpuFamily.APPLE9, GpuFamily.APPLE8}) {
      if (device.supports(family)) {
        return family;
      }
    }
    return GpuFamily.APPLE7;
  }

  @Override
  public String id() {
    return MetalBackendProvider.ID;
  }

  @Override
  public DeviceInfo device() {
    return info;
  }

  @Override
  public String memoryRemedy(long neededBytes) {
    return "let the GPU have more of this Mac's memory (sudo sysctl iogpu.wired_limit_mb=%d, until the next restart; leave the system a few GB), or use a Mac with more memory"
        .formatted(neededBytes / MEBIBYTE + 1);
  }

  @Override
  public int maxPassesInFlight() {
    return MAX_PASSES;
  }

  @Override
  public void mapWeights(MemorySegment file) {
    loader.map(file);
  }

  @Override
  public Matrix matrix(MatrixSource source) {
    return loader.load(source);
  }

  @Override
  public Tensor constant(float... values) {
    return MetalTensor.constant(memory, values);
  }

  @Override
  public Tensor tensor(int rows, int columns) {
    return new MetalTensor(memory, rows, columns);
  }

  /** Files are wrapped whole, and a buffer counts whole for Metal. */
  @Override
  public long weightBytes(long tensorBytes, long fileBytes) {
    return fileBytes;
  }

  @Override
  public long tensorBytes(TensorUse use, int rows, int columns) {
    return MetalTensor.bytes(use, rows, columns);
  }

  @Override
  public long stateBytes(StateLayout layout) {
    UnsupportedKeyValueTypeException.check(this, layout.keyValueType());
    return MetalState.bytes(layout);
  }

  @Override
  public long workspaceBytes(StateLayout layout, ModelShape shape, PassLimits limits) {
    return MetalState.workspaceBytes(layout, shape, limits);
  }

  @Override
  public DeviceState openState(StateLayout layout, ModelShape shape, PassLimits limits) {
    long needed = stateBytes(layout) + workspaceBytes(layout, shape, limits);
    long used = device.currentAllocatedBytes();
    long most = device.recommendedMaxWorkingSetBytes();
    if (used + needed > most) {
      throw new BackendException(
          "State and scratch of %d MiB do not fit beside the %d MiB in use: this GPU should use at most %d MiB. Lower the context length, the sessions or the prefill chunk, or raise the limit with sudo sysctl iogpu.wired_limit_mb=N"
              .formatted(needed / MEBIBYTE, used / MEBIBYTE, most / MEBIBYTE));
    }
    MetalState state = new MetalState(memory, queue, kernels, budget, layout, shape, limits);
    loader.readAhead();
    memory.keepResident();
    return state;
  }

  @Override
  public ComputePass begin(RowPlan plan, DeviceState state) {
    return MetalState.of(state).begin(plan);
  }

  @Override
  public @Nullable PendingPass replay(RowPlan plan, DeviceState state) {
    return MetalState.of(state).replay(plan);
  }

  @Override
  public void close() {
    memory.end();
    device.close();
  }
}
