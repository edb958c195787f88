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
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * Qwen3.6-35B-A3B as the Metal back end sees it, with sequences that sample greedily. For counting,
 * timing and tracing passes whose kernels do not run.
 */
final class Model35b implements AutoCloseable {
  private static final int HIDDEN = 2048;
  private static final int VOCABULARY = 248_320;
  private static final int LAYERS = 40;
  private static final int DELTA_LAYERS = 30;
  private static final int ATTENTION_LAYERS = 10;
  private static final int PAGE_TOKENS = 32;
  private static final ModelShape SHAPE =
      new ModelShape(HIDDEN, 16, 256, 4096, 256, 8, 512, 512, VOCABULARY);
  private static final int[] PREVIOUS = {RowPlan.PREVIOUS_TOKEN};

  private static final float EPS = 1e-6f;
  private static final long WEIGHTS_BYTES = 20L << 30;
  private static final long ALIGNMENT = 256;

  private record Layer(
      Tensor inputGain, Tensor outputGain, Mixer mixer, Matrix output, ExpertsOperands experts) {}

  private sealed interface Mixer permits Delta, Attention {}

  private record Delta(StackedProjection inputs, GatedDeltaOperands operands) implements Mixer {}

  private record Attention(StackedProjection inputs, AttentionOperands operands) implements Mixer {}

  private final Arena arena = Arena.ofShared();
  private final MetalBackend backend;
  private final DeviceState state;
  private final PassLimits limits;
  private final boolean isShared;
  private final MemorySegment weights;
  private final PageTable[] pages;
  private final RowPlan plan;
  private final Random random = new Random(35);
  private final List<Layer> layers = new ArrayList<>();
  private final Tensor x;
  private final Tensor n;
  private final Tensor branch;
  private final Matrix embedding;
  private final LogitsOperands head;
  private long used;
  private @Nullable MetalPass pass;

  /** All matrices over the same weights. */
  Model35b(PassLimits limits) {
    this(BackendOptions.DEFAULT, limits, null);
  }

  /**
   * @param file a new sparse file, in which every matrix has weights of its own; {@code null} to
   *     have all matrices share some
   */
  Model35b(BackendOptions options, PassLimits limits, @Nullable Path file) {
    this.limits = limits;
    backend = (MetalBackend) new MetalBackendProvider().open(options);
    isShared = file == null;
    // Pages that are never touched take no memory.
    weights =
        file == null
            ? arena.allocate((long) VOCABULARY * HIDDEN / 2, 1 << 14)
            : sparse(file, arena);
    backend.mapWeights(weights);
    x = tensor(HIDDEN);
    n = tensor(HIDDEN);
    branch = tensor(HIDDEN);
    embedding = matrix(4, 1, VOCABULARY, HIDDEN);
    Tensor qkv = tensor(8192);
    Tensor z = tensor(4096);
    Tensor a = tensor(32);
    Tensor b = tensor(32);
    Tensor y = tensor(4096);
    Tensor key = tensor(512);
    Tensor value = tensor(512);
    Tensor query = tensor(4096);
    Tensor attentionScratch = tensor(4096);
    Tensor routerLogits = tensor(256);
    int delta = 0;
    int attention = 0;
    for (int i = 0; i < LAYERS; i++) {
      Mixer mixer =
          i % 4 == 3
              ? new Attention(
                  stack(qkv, key, value),
                  new AttentionOperands(
                      attention++,
                      16,
                      2,
                      256,
                      64,
                      1e7,
                      qkv,
                      key,
                      value,
                      constant(256, 1),
                      constant(256, 1),
                      EPS,
                      query,
                      attentionScratch,
                      y))
              : new Delta(
                  stack(qkv, z, a, b),
                  new GatedDeltaOperands(
                      delta++,
                      16,
                      32,
                      128,
                      128,
                      4,
                      qkv,
                      z,
                      a,
                      b,
                      constant(8192 * 4, 0),
                      constant(32, 0),
                      constant(32, 0),
                      constant(128, 1),
                      EPS,
                      y));
      layers.add(
          new Layer(
              constant(HIDDEN, 1),
              constant(HIDDEN, 1),
              mixer,
              matrix(4, 1, HIDDEN, 4096),
              experts(routerLogits)));
    }
    head =
        new LogitsOperands(
            backend.tensor(limits.maxLogitRows(), HIDDEN),
            constant(HIDDEN, 1),
            EPS,
            matrix(4, 1, VOCABULARY, HIDDEN),
            backend.tensor(limits.maxLogitRows(), HIDDEN),
            backend.tensor(limits.maxLogitRows(), VOCABULARY));
    int sequences = limits.maxSequences();
    int pagesEach = (limits.maxPositions() + PAGE_TOKENS - 1) / PAGE_TOKENS;
    state = backend.openState(layout(pagesEach * sequences, sequences), SHAPE, limits);
    pages = new PageTable[sequences];
    for (int s = 0; s < sequences; s++) {
      state.beginSampling(s, SamplingParameters.of(SamplingOptions.GREEDY, 0, -1), new int[0]);
      pages[s] = pages(s * pagesEach, pagesEach);
    }
    plan = new RowPlan(limits);
  }

  private static StateLayout layout(int numPages, int sequences) {
    return new StateLayout(
        ATTENTION_LAYERS,
        2,
        256,
        PAGE_TOKENS,
        numPages,
        DELTA_LAYERS,
        4,
        8192,
        32,
        128,
        128,
        sequences,
        sequences,
        VOCABULARY);
  }

  private static MemorySegment sparse(Path file, Arena arena) {
    try (FileChannel channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE_NEW,
            StandardOpenOption.SPARSE,
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      channel.write(ByteBuffer.allocate(1), WEIGHTS_BYTES - 1);
      return channel.map(FileChannel.MapMode.READ_ONLY, 0, WEIGHTS_BYTES, arena);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Tensor tensor(int columns) {
    return backend.tensor(limits.maxRows(), columns);
  }

  private Tensor constant(int size, float mean) {
    float[] values = new float[size];
    for (int i = 0; i < size; i++) {
      values[i] = mean + 0.25f * (float) random.nextGaussian();
    }
    return backend.constant(values);
  }

  private MemorySegment take(long bytes) {
    if (isShared) {
      return weights.asSlice(0, bytes);
    }
    MemorySegment taken = weights.asSlice(used, bytes);
    used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return taken;
  }

  private Matrix matrix(int bits, int numMatrices, int rows, int columns) {
    long elements = (long) numMatrices * rows * columns;
    return backend.matrix(
        new MatrixSource.Affine(
            "weights at " + used,
            numMatrices,
            rows,
            columns,
            64,
            bits,
            take(elements * bits / 8),
            take(elements / 64 * 2),
            take(elements / 64 * 2)));
  }

  private StackedProjection stack(Tensor... outputs) {
    List<Matrix> matrices =
        Arrays.stream(outputs).map(out -> matrix(4, 1, out.columns(), HIDDEN)).toList();
    return new StackedProjection(n, matrices, List.of(outputs));
  }

  private ExpertsOperands experts(Tensor routerLogits) {
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
        routerLogits,
        branch);
  }

  /** Pages of a sequence, not in ascending order. */
  private static PageTable pages(int first, int count) {
    PageTable pages = new PageTable();
    for (int i = 0; i < count; i++) {
      pages.add(first + (i % 2 == 0 ? i / 2 : count - 1 - i / 2));
    }
    return pages;
  }

  DeviceState state() {
    return state;
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
    int[] ids = new int[count];
    for (int i = 0; i < count; i++) {
      ids[i] = (int) ((i * 2_654_435_761L & 0xFFFF_FFFFL) % VOCABULARY);
    }
    rows.add(ids, 0, count, position, pages[sequence], sequence, 1, sequence);
  }

  /** Runs a plan as the model does. */
  PendingPass forward(RowPlan rows) {
    PendingPass replayed = replay(rows);
    return replayed != null ? replayed : record(rows);
  }

  /** Sends a recorded step again; {@code null} if none suits the plan. */
  @Nullable PendingPass replay(RowPlan rows) {
    return backend.replay(rows, state);
  }

  /** Runs the graph over a plan, verb by verb. */
  PendingPass record(RowPlan rows) {
    MetalPass recorded = (MetalPass) backend.begin(rows, state);
    pass = recorded;
    recorded.embed(embedding, x);
    Tensor residual = null;
    for (int i = 0; i < layers.size(); i++) { // without an iterator: passes allocate nothing
      Layer layer = layers.get(i);
      recorded.addNormalize(x, residual, layer.inputGain, EPS, n);
      switch (layer.mixer) {
        case Delta(StackedProjection inputs, GatedDeltaOperands operands) -> {
          recorded.projectStack(inputs);
          recorded.gatedDelta(operands);
          recorded.project(operands.y(), layer.output, branch);
        }
        case Attention(StackedProjection inputs, AttentionOperands operands) -> {
          recorded.projectStack(inputs);
          recorded.prepareAttention(operands);
          recorded.attend(operands);
          recorded.project(operands.y(), layer.output, branch);
        }
      }
      recorded.addNormalize(x, branch, layer.outputGain, EPS, n);
      recorded.experts(layer.experts);
      residual = branch;
    }
    recorded.gatherRows(x, branch, head.rows());
    recorded.logits(head);
    recorded.sample(head.logits());
    return recorded.submit();
  }

  /** Dispatches and barriers of the last pass that was recorded or replayed. */
  MetalPass pass() {
    return Objects.requireNonNull(pass);
  }

  @Override
  public void close() {
    state.close();
    backend.close();
    arena.close();
  }
}
