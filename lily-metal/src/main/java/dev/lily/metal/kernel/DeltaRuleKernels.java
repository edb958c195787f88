package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.StateLayout;
import dev.lily.metal.device.ComputePipeline;
import java.util.List;

/** Gated DeltaNet: one step per decode row, a scan over the rows of each prefill sequence. */
public final class DeltaRuleKernels {
  static final List<String> NAMES =
      List.of(
          "delta_step_k128",
          "delta_step_k256",
          "delta_mix",
          "delta_scan_k128",
          "delta_scan_k256",
          "delta_norm");

  /** Key dimensions that the smaller kernels hold. */
  private static final int SMALL_KEY_DIM = 128;

  private static final int MAX_DIM = 256;
  private static final int MAX_TAPS = 8;
  private static final int STEP_THREADS = 512;
  private static final int SCAN_THREADS = 128;
  private static final int SCAN_COLUMNS = 16;
  private static final int THREADS = 256;
  private static final int SIMDGROUPS = 8;

  private final KernelEncoder encoder;
  private final ComputePipeline step128;
  private final ComputePipeline step256;
  private final ComputePipeline mix;
  private final ComputePipeline scan128;
  private final ComputePipeline scan256;
  private final ComputePipeline norm;

  public DeltaRuleKernels(KernelLibrary library, KernelEncoder encoder) {
    this.encoder = encoder;
    step128 = library.pipeline("delta_step_k128");
    step256 = library.pipeline("delta_step_k256");
    mix = library.pipeline("delta_mix");
    scan128 = library.pipeline("delta_scan_k128");
    scan256 = library.pipeline("delta_scan_k256");
    norm = library.pipeline("delta_norm");
  }

  /** The recurrent slots and the scratch of the scan. */
  public static final class State {
    private final StateLayout layout;
    private final Region windows;
    private final Region states;
    private final Region mixed;
    private final Region gates;
    private final Region outputs;

    /**
     * @param windows of {@link #windowSlotBytes} a slot
     * @param states of {@link #stateSlotBytes} a slot
     * @param mixed fp32 {@code [rows, channels]}
     * @param gates fp32 {@code [rows, valueHeads, 2]}
     * @param outputs fp32 {@code [rows, valueHeads · valueDim]}
     */
    public State(
        StateLayout layout,
        Region windows,
        Region states,
        Region mixed,
        Region gates,
        Region outputs) {
      this.layout = layout;
      this.windows = windows;
      this.states = states;
      this.mixed = mixed;
      this.gates = gates;
      this.outputs = outputs;
    }

    public Region windows() {
      return windows;
    }

    public Region states() {
      return states;
    }
  }

  /** Bytes of a slot's windows of all layers, a multiple of 16. */
  public static long windowSlotBytes(StateLayout layout) {
    return (windowElements(layout) * layout.numDeltaLayers() + 7) / 8 * 16;
  }

  /** Bytes of a slot's states of all layers, a multiple of 16. */
  public static long stateSlotBytes(StateLayout layout) {
    return (stateElements(layout) * layout.numDeltaLayers() + 3) / 4 * 16;
  }

  private static long windowElements(StateLayout layout) {
    return (long) layout.numValueHeads()
        * (layout.convKernel() - 1)
        * (2L * layout.keyDim() + layout.valueDim());
  }

  private static long stateElements(StateLayout layout) {
    return (long) layout.numValueHeads() * layout.valueDim() * layout.keyDim();
  }

  private static void require(GatedDeltaOperands o, StateLayout layout) {
    if (o.keyDim() > MAX_DIM || o.valueDim() > MAX_DIM || o.convKernel() > MAX_TAPS) {
      throw new BackendException(
          "A delta layer with heads of %d and %d and %d taps: at most %d and %d taps are supported"
              .formatted(o.keyDim(), o.valueDim(), o.convKernel(), MAX_DIM, MAX_TAPS));
    }
    if (o.numValueHeads() != layout.numValueHeads()
        || o.keyDim() != layout.keyDim()
        || o.valueDim() != layout.valueDim()
        || o.convKernel() != layout.convKernel()) {
      throw new BackendException("A delta layer does not fit the recurrent slots: " + layout);
    }
  }

  /**
   * Runs the layer over all rows.
   *
   * @param y bf16 {@code [rows, valueHeads · valueDim]}
   */
  public void run(
      DevicePlan plan,
      GatedDeltaOperands o,
      State state,
      Region qkv,
      Region z,
      Region a,
      Region b,
      Region y) {
    require(o, state.layout);
    if (plan.numPrefillRows() > 0) {
      prefill(plan, o, state, qkv, z, a, b, y);
    }
    if (plan.numDecodeRows() > 0) {
      encoder
          .kernel(o.keyDim() <= SMALL_KEY_DIM ? step128 : step256, RowPart.DECODE)
          .read(qkv)
          .read(z)
          .read(a)
          .read(b);
      bindConstants(o);
      encoder.constant(MetalTensor.of(o.gain()).current().buffer(), 0);
      plan.bindSequences(encoder, plan.numPrefillSequences());
      encoder
          .write(state.windows, windowOffset(o, state))
          .write(state.states, stateOffset(o, state))
          .write(y);
      parameters(o, state);
      encoder.dispatch(o.numValueHeads(), plan.numDecodeRows(), 1, STEP_THREADS);
    }
  }

  private void prefill(
      DevicePlan plan,
      GatedDeltaOperands o,
      State state,
      Region qkv,
      Region z,
      Region a,
      Region b,
      Region y) {
    encoder.kernel(mix, RowPart.PREFILL).read(qkv).read(a).read(b);
    bindConstants(o);
    plan.bindSequences(encoder, 0);
    plan.bindSequenceOf(encoder, 0);
    encoder.read(state.windows, windowOffset(o, state)).write(state.mixed).write(state.gates);
    parameters(o, state);
    encoder.dispatch(
        KernelEncoder.ceilDiv(2 * o.numKeyHeads() + o.numValueHeads(), SIMDGROUPS),
        plan.numPrefillRows(),
        1,
        THREADS);

    encoder
        .kernel(o.keyDim() <= SMALL_KEY_DIM ? scan128 : scan256, RowPart.PREFILL)
        .read(state.mixed)
        .read(state.gates);
    plan.bindSequences(encoder, 0);
    encoder.write(state.states, stateOffset(o, state)).write(state.outputs);
    parameters(o, state);
    encoder.dispatch(
        KernelEncoder.ceilDiv(o.valueDim(), SCAN_COLUMNS),
        o.numValueHeads(),
        plan.numPrefillSequences(),
        SCAN_THREADS);

    encoder
        .kernel(norm, RowPart.PREFILL)
        .read(state.outputs)
        .read(z)
        .constant(MetalTensor.of(o.gain()).current().buffer(), 0)
        .read(qkv);
    plan.bindSequences(encoder, 0);
    plan.bindSequenceOf(encoder, 0);
    encoder.write(state.windows, windowOffset(o, state)).write(y);
    parameters(o, state);
    encoder.dispatch(
        KernelEncoder.ceilDiv(o.numValueHeads(), SIMDGROUPS), plan.numPrefillRows(), 1, THREADS);
  }

  private void bindConstants(GatedDeltaOperands o) {
    encoder
        .constant(MetalTensor.of(o.convWeight()).current().buffer(), 0)
        .constant(MetalTensor.of(o.aLog()).current().buffer(), 0)
        .constant(MetalTensor.of(o.dtBias()).current().buffer(), 0);
  }

  private static long windowOffset(GatedDeltaOperands o, State state) {
    return windowElements(state.layout) * o.layer() * ElementType.BF16.bytes();
  }

  private static long stateOffset(GatedDeltaOperands o, State state) {
    return stateElements(state.layout) * o.layer() * Float.BYTES;
  }

  private void parameters(GatedDeltaOperands o, State state) {
    encoder
        .field(o.numKeyHeads())
        .field(o.numValueHeads())
        .field(o.keyDim())
        .field(o.valueDim())
        .field(o.convKernel())
        .field(Math.toIntExact(windowSlotBytes(state.layout) / ElementType.BF16.bytes()))
        .field(Math.toIntExact(stateSlotBytes(state.layout) / Float.BYTES))
        .field(o.eps())
        .parameters();
  }
}
