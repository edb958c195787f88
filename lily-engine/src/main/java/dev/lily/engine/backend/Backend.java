package dev.lily.engine.backend;

import java.lang.foreign.MemorySegment;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * An open device. Loads weights, allocates activations and state, and runs passes. Engine thread
 * only, except {@link #device}. Closing frees everything it handed out.
 */
public interface Backend extends AutoCloseable {
  /** The provider's id. */
  String id();

  DeviceInfo device();

  /**
   * Passes that may be submitted before the first must be awaited: 1 where a pass runs at once, 2
   * where the host can run ahead of the device.
   */
  int maxPassesInFlight();

  /**
   * Announces a mapped checkpoint file of which later matrix sources are slices, so that a device
   * can wrap it whole. The mapping outlives the back end.
   */
  void mapWeights(MemorySegment file);

  /**
   * What a user can do about a model that needs more memory than this device may use; the end of a
   * sentence.
   */
  default String memoryRemedy(long neededBytes) {
    return "use a machine with more memory";
  }

  /** Loads a matrix or a stack: keeps the mapping, or copies it into the layout of its kernels. */
  Matrix matrix(MatrixSource source);

  /** What keys and values can be kept as; a state of another type cannot be planned or opened. */
  default Set<KeyValueType> keyValueTypes() {
    return EnumSet.of(KeyValueType.BF16);
  }

  /** Loads a matrix that only {@link ComputePass#embed} reads. */
  default Matrix embedding(MatrixSource source) {
    return matrix(source);
  }

  /** A constant of one row, converted to the device's type. */
  Tensor constant(float... values);

  /** Scratch activations, shared by all layers. Contents start as NaN where the type has one. */
  Tensor tensor(int rows, int columns);

  /**
   * Bytes that the weights of a checkpoint take, for the memory plan; called before they are
   * loaded.
   *
   * @param tensorBytes of the tensors that become matrices
   * @param fileBytes of the files that hold them, with whatever else is in there
   */
  default long weightBytes(long tensorBytes, long fileBytes) {
    return tensorBytes;
  }

  /** Bytes a {@link #tensor} of this size takes once it is used so, for the memory plan. */
  long tensorBytes(TensorUse use, int rows, int columns);

  /** Bytes {@link #openState} would take, for the memory plan. */
  long stateBytes(StateLayout layout);

  /**
   * Bytes of the back end's own scratch for passes up to the limits, for the memory plan.
   *
   * @param layout of the state that they work on
   */
  long workspaceBytes(StateLayout layout, ModelShape shape, PassLimits limits);

  /**
   * Allocates sequence state, and the back end's own scratch for passes up to the limits over the
   * matrices loaded so far: weights are loaded first.
   *
   * @throws BackendException if it does not fit
   */
  DeviceState openState(StateLayout layout, ModelShape shape, PassLimits limits);

  /**
   * Begins recording a pass.
   *
   * @param plan read until the pass is submitted, not kept afterwards
   */
  ComputePass begin(RowPlan plan, DeviceState state);

  /**
   * Runs again what an earlier pass of this state recorded, over another plan: for graphs whose
   * verbs and operands are the same for all plans with as many rows that need logits. Spares host
   * time where a back end keeps decode steps. A pass with {@link ComputePass#copyOut} is not kept.
   *
   * @return the submitted pass; {@code null} if none that suits the plan was kept, and the pass
   *     must be recorded from {@link #begin} on
   * @throws BackendException as {@link #begin} and the verbs
   */
  default @Nullable PendingPass replay(RowPlan plan, DeviceState state) {
    return null;
  }

  @Override
  void close();
}
