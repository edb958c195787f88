package dev.lily.metal;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The graph of Qwen3.6-35B-A3B over weights that no memory is spent on: all layers share one set.
 * For counting and timing what a step costs the host; the double need not run the kernels.
 */
final class Qwen35Steps implements AutoCloseable {
  static final int DELTA_LAYERS = 30;
  static final int ATTENTION_LAYERS = 10;

  private static final int HIDDEN = 2048;
  private static final int VOCABULARY = 248_320;
  private static final float EPS = 1e-6f;
  private static final int PAGE_TOKENS = 32;
  private static final int[] PREVIOUS = {RowPlan.PREVIOUS_TOKEN};
  private static final ModelShape SHAPE =
      new ModelShape(HIDDEN, 16, 256, 4096, 256, 8, 512, 512, VOCABULARY);

  final MetalBackend backend;
  final DeviceState state;

  private final PassLimits limits;
  private final MemorySegment weights;
  private final PageTable[] pages;
  private final Tensor x;
  private final Tensor n;
  private final Tensor branch;
  private final Tensor gain;
  private final GatedDeltaOperands[] deltas = new GatedDeltaOperands[DELTA_LAYERS];
  private final AttentionOperands[] attentions = new AttentionOperands[ATTENTION_LAYERS];
  private final StackedProjection deltaInputs;
  private final StackedProjection attentionInputs;
  private final Matrix mixerOutput;
  private final ExpertsOperands experts;
  private final LogitsOperands head;
  private final RowPlan plan;
  private @Nullable MetalPass pass;

  static PassLimits limits(int rows, int sequences, int positions) {
    return new PassLimits(rows, sequences, sequences, positions);
  }

  Qwen35Steps(PassLimits limits) {
    this.limits = limits;
    backend = (MetalBackend) new MetalBackendProvider().open(BackendOptions.DEFAULT);
    // Pages that are never touched take no memory.
    weights = Arena.ofAuto().allocate((long) VOCABULARY * HIDDEN / 2, 1 << 14);
    backend.mapWeights(weights);
    x = tensor(HIDDEN);
    n = tensor(HIDDEN);
    branch = tensor(HIDDEN);
    gain = constant(HIDDEN);
    GatedDeltaOperands delta = delta();
    for (int layer = 0; layer < DELTA_LAYERS; layer++) {
      deltas[layer] = of(delta, layer);
    }
    AttentionOperands attention = attention();
    for (int layer = 0; layer < ATTENTION_LAYERS; layer++) {
      attentions[layer] = of(attention, layer);
    }
    deltaInputs = stack(delta.qkv(), delta.z(), delta.a(), delta.b());
    attentionInputs = stack(attention.queryAndGate(), attention.key(), attention.value());
    mixerOutput = matrix(4, 1, HIDDEN, 4096);
    experts = experts();
    head =
        new LogitsOperands(
            logitTensor(HIDDEN),
            gain,
            EPS,
            matrix(4, 1, VOCABULARY, HIDDEN),
            logitTensor(HIDDEN),
            logitTensor(VOCABULARY));
    int sequences = limits.maxSequences();
    int pagesEach = (limits.maxPositions() + PAGE_TOKENS - 1) / PAGE_TOKENS;
    state =
        backend.openState(
            new StateLayout(
                ATTENTION_LAYERS,
                2,
                256,
                PAGE_TOKENS,
                pagesEach * sequences,
                DELTA_LAYERS,
                4,
                8192,
                32,
                128,
                128,
                sequences,
                sequences,
                VOCABULARY),
            SHAPE,
            limits);
    pages = new PageTable[sequences];
    for (int s = 0; s < sequences; s++) {
      state.beginSampling(s, SamplingParameters.of(SamplingOptions.GREEDY, 0, -1), new int[0]);
      pages[s] = new PageTable();
      for (int p = 0; p < pagesEach; p++) {
        pages[s].add(s * pagesEach + p);
      }
    }
    plan = new RowPlan(limits);
  }

  private Tensor tensor(int columns) {
    return backend.tensor(limits.maxRows(), columns);
  }

  private Tensor logitTensor(int columns) {
    return backend.tensor(limits.maxLogitRows(), columns);
  }

  private Tensor constant(int size) {
    return backend.constant(new float[size]);
  }

  private Matrix matrix(int bits, int numMatrices, int rows, int columns) {
    long elements = (long) numMatrices * rows * columns;
    MemorySegment groups = weights.asSlice(0, elements / 64 * 2);
    return backend.matrix(
        new MatrixSource.Affine(
            "weights",
            numMatrices,
            rows,
            columns,
            64,
            bits,
            weights.asSlice(0, elements * bits / 8),
            groups,
            groups));
  }

  private StackedProjection stack(Tensor... outputs) {
    List<Matrix> matrices =
        Arrays.stream(outputs).map(out -> matrix(4, 1, out.columns(), HIDDEN)).toList();
    return new StackedProjection(n, matrices, List.of(outputs));
  }

  private ExpertsOperands experts() {
    return new ExpertsOperands(
        8,
        n,
        matrix(8, 1, 256, HIDDEN),
        matrix(4, 256, 512, HIDDEN),
        matrix(4, 256, 512, HIDDEN),
        matrix(4, 256, HIDDEN, 512),
        matrix(4, 1, 512, HIDDEN),
        matrix(4, 1, 512, HIDDEN),
        matrix(4, 1, HIDDEN, 512),
        matrix(8, 1, 1, HIDDEN),
        tensor(256),
        branch);
  }

  private GatedDeltaOperands delta() {
    return new GatedDeltaOperands(
        0,
        16,
        32,
        128,
        128,
        4,
        tensor(8192),
        tensor(4096),
        tensor(32),
        tensor(32),
        constant(8192 * 4),
        constant(32),
        constant(32),
        constant(128),
        EPS,
        tensor(4096));
  }

  private static GatedDeltaOperands of(GatedDeltaOperands o, int layer) {
    return new GatedDeltaOperands(
        layer,
        o.numKeyHeads(),
        o.numValueHeads(),
        o.keyDim(),
        o.valueDim(),
        o.convKernel(),
        o.qkv(),
        o.z(),
        o.a(),
        o.b(),
        o.convWeight(),
        o.aLog(),
        o.dtBias(),
        o.gain(),
        o.eps(),
        o.y());
  }

  private AttentionOperands attention() {
    return new AttentionOperands(
        0,
        16,
        2,
        256,
        64,
        1e7,
        tensor(8192),
        tensor(512),
        tensor(512),
        constant(256),
        constant(256),
        EPS,
        tensor(4096),
        tensor(4096),
        tensor(4096));
  }

  private static AttentionOperands of(AttentionOperands o, int layer) {
    return new AttentionOperands(
        layer,
        o.numHeads(),
        o.numKeyValueHeads(),
        o.headDim(),
        o.rotaryDim(),
        o.ropeTheta(),
        o.queryAndGate(),
        o.key(),
        o.value(),
        o.queryGain(),
        o.keyGain(),
        o.eps(),
        o.query(),
        o.gate(),
        o.y());
  }

  /** The plan of the next pass, empty. */
  RowPlan plan() {
    plan.clear();
    return plan;
  }

  /** Adds a decode row of a sequence, which samples. */
  void addDecode(RowPlan rows, int sequence, int position) {
    rows.add(PREVIOUS, 0, 1, position, pages[sequence], sequence, 1, sequence);
  }

  /** Adds a prompt of a sequence, which samples at its end. */
  void addPrefill(RowPlan rows, int sequence, int position, int count) {
    rows.add(new int[count], 0, count, position, pages[sequence], sequence, 1, sequence);
  }

  /** Runs a plan as the model does. */
  PendingPass forward(RowPlan rows) {
    PendingPass replayed = backend.replay(rows, state);
    return replayed != null ? replayed : record(rows);
  }

  /** Runs the graph over a plan, verb by verb. */
  PendingPass record(RowPlan rows) {
    MetalPass recorded = (MetalPass) backend.begin(rows, state);
    pass = recorded;
    recorded.embed(head.lmHead(), x);
    for (int layer = 0; layer < DELTA_LAYERS + ATTENTION_LAYERS; layer++) {
      recorded.addNormalize(x, layer == 0 ? null : branch, gain, EPS, n);
      if (layer % 4 != 3) {
        GatedDeltaOperands delta = deltas[layer / 4 * 3 + layer % 4];
        recorded.projectStack(deltaInputs);
        recorded.gatedDelta(delta);
        recorded.project(delta.y(), mixerOutput, branch);
      } else {
        AttentionOperands attention = attentions[layer / 4];
        recorded.projectStack(attentionInputs);
        recorded.prepareAttention(attention);
        recorded.attend(attention);
        recorded.project(attention.y(), mixerOutput, branch);
      }
      recorded.addNormalize(x, branch, gain, EPS, n);
      recorded.experts(experts);
    }
    recorded.gatherRows(x, branch, head.rows());
    recorded.logits(head);
    recorded.sample(head.logits());
    return recorded.submit();
  }

  /** Dispatches and barriers of the last pass. */
  MetalPass pass() {
    return Objects.requireNonNull(pass);
  }

  @Override
  public void close() {
    state.close();
    backend.close();
  }
}
