package dev.lily.metal;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
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
import java.util.Random;

/**
 * Qwen3.6-35B-A3B as a back end sees it: every layer with weights of its own, in a mapped file of
 * which no page exists. For passes whose kernels do not run.
 */
final class Model35b {
  static final int HIDDEN = 2048;
  static final int VOCABULARY = 248_320;
  static final int LAYERS = 40;
  static final int DELTA_LAYERS = 30;
  static final int ATTENTION_LAYERS = 10;
  static final int PAGE_TOKENS = 32;
  static final ModelShape SHAPE =
      new ModelShape(HIDDEN, 16, 256, 4096, 256, 8, 512, 512, VOCABULARY);

  private static final float EPS = 1e-6f;
  private static final long WEIGHTS_BYTES = 20L << 30;
  private static final long ALIGNMENT = 256;

  private record Layer(
      Tensor inputGain, Tensor outputGain, Mixer mixer, Matrix output, ExpertsOperands experts) {}

  private sealed interface Mixer permits Delta, Attention {}

  private record Delta(StackedProjection inputs, GatedDeltaOperands operands) implements Mixer {}

  private record Attention(StackedProjection inputs, AttentionOperands operands) implements Mixer {}

  private final MetalBackend backend;
  private final PassLimits limits;
  private final MemorySegment weights;
  private final Random random = new Random(35);
  private final List<Layer> layers = new ArrayList<>();
  private final Tensor x;
  private final Tensor n;
  private final Tensor branch;
  private final Matrix embedding;
  private final LogitsOperands head;
  private long used;

  /**
   * @param file a new sparse file for the weights
   * @param arena of its mapping
   */
  Model35b(MetalBackend backend, PassLimits limits, Path file, Arena arena) {
    this.backend = backend;
    this.limits = limits;
    weights = sparse(file, arena);
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
  }

  static StateLayout layout(int numPages) {
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
        1,
        1,
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

  /** Pages for a sequence of so many tokens, not in ascending order. */
  static PageTable pages(int tokens) {
    int count = (tokens + PAGE_TOKENS - 1) / PAGE_TOKENS;
    PageTable pages = new PageTable();
    for (int i = 0; i < count; i++) {
      pages.add(i % 2 == 0 ? i / 2 : count - 1 - i / 2);
    }
    return pages;
  }

  /** Records a pass as {@code Qwen35Moe} does, submits it and waits for it. */
  MetalPass run(RowPlan plan, DeviceState state) {
    MetalPass pass = (MetalPass) backend.begin(plan, state);
    pass.embed(embedding, x);
    Tensor residual = null;
    for (Layer layer : layers) {
      pass.addNormalize(x, residual, layer.inputGain, EPS, n);
      switch (layer.mixer) {
        case Delta(StackedProjection inputs, GatedDeltaOperands operands) -> {
          pass.projectStack(inputs);
          pass.gatedDelta(operands);
          pass.project(operands.y(), layer.output, branch);
        }
        case Attention(StackedProjection inputs, AttentionOperands operands) -> {
          pass.projectStack(inputs);
          pass.prepareAttention(operands);
          pass.attend(operands);
          pass.project(operands.y(), layer.output, branch);
        }
      }
      pass.addNormalize(x, branch, layer.outputGain, EPS, n);
      pass.experts(layer.experts);
      residual = branch;
    }
    pass.gatherRows(x, branch, head.rows());
    pass.logits(head);
    pass.sample(head.logits());
    pass.submit().await();
    return pass;
  }
}
