package dev.lily.engine.bench;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendSelector;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * Measures the attention of one decode step over random keys and values, for each type of the KV
 * cache in turn, on one thread of the CPU. Counts processor time, which other programs disturb less
 * than they do a clock.
 */
public final class AttentionBench {
  private static final int PAGE_TOKENS = 32;
  private static final int CHUNK = 256;

  /** Attention layers of a model. */
  private record Shape(int layers, int heads, int keyValueHeads, int headDim) {}

  private record Measured(KeyValueType type, DeviceState state, double[] milliseconds) {}

  private final Shape shape;
  private final int context;
  private final Backend backend;
  private final RowPlan plan;
  private final PassLimits limits;
  private final PageTable pages = new PageTable();
  private final List<AttentionOperands> layers = new ArrayList<>();
  private final Matrix queries;
  private final Matrix keys;

  private AttentionBench(Shape shape, int context, Backend backend, Arena arena) {
    this.shape = shape;
    this.context = context;
    this.backend = backend;
    limits = new PassLimits(CHUNK, 1, 1, context);
    plan = new RowPlan(limits);
    for (int i = 0; i < Math.ceilDiv(context, PAGE_TOKENS); i++) {
      pages.add(i);
    }
    int width = shape.heads * shape.headDim;
    int keyWidth = shape.keyValueHeads * shape.headDim;
    queries = random(2 * width, arena);
    keys = random(keyWidth, arena);
    float[] ones = new float[shape.headDim];
    Arrays.fill(ones, 1);
    Tensor gain = backend.constant(ones);
    Tensor queryAndGate = backend.tensor(CHUNK, 2 * width);
    Tensor key = backend.tensor(CHUNK, keyWidth);
    Tensor query = backend.tensor(CHUNK, width);
    Tensor gate = backend.tensor(CHUNK, width);
    Tensor y = backend.tensor(CHUNK, width);
    for (int layer = 0; layer < shape.layers; layer++) {
      layers.add(
          new AttentionOperands(
              layer,
              shape.heads,
              shape.keyValueHeads,
              shape.headDim,
              shape.headDim / 4,
              1e7,
              queryAndGate,
              key,
              key,
              gain,
              gain,
              1e-6f,
              query,
              gate,
              y));
    }
  }

  /** Rows of random numbers, one for each row of a chunk. */
  private Matrix random(int columns, Arena arena) {
    SplittableRandom random = new SplittableRandom(columns);
    long bytes = (long) CHUNK * columns * Float.BYTES;
    MemorySegment values = arena.allocate(bytes, Float.BYTES);
    for (long i = 0; i < (long) CHUNK * columns; i++) {
      values.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) random.nextDouble(-1, 1));
    }
    return backend.matrix(
        new MatrixSource.Dense("random", 1, CHUNK, columns, DType.F32, bytes, values));
  }

  /** Arguments: shape ({@code 35b} or {@code mid}), context length, rounds. */
  public static void main(String[] arguments) {
    if (arguments.length != 3) {
      System.err.println("Usage: AttentionBench 35b|mid CONTEXT ROUNDS");
      System.exit(2);
    }
    Shape shape =
        switch (arguments[0]) {
          case "35b" -> new Shape(10, 16, 2, 256);
          case "mid" -> new Shape(4, 8, 2, 256);
          default -> throw new IllegalArgumentException("Unknown shape " + arguments[0]);
        };
    int context = Integer.parseInt(arguments[1]);
    int rounds = Integer.parseInt(arguments[2]);
    try (Arena arena = Arena.ofConfined();
        Backend backend =
            BackendSelector.select("cpu").provider().open(new BackendOptions(1, "auto"))) {
      System.out.println(backend.device().detail());
      new AttentionBench(shape, context, backend, arena).run(rounds);
    }
  }

  private void run(int rounds) {
    List<Measured> all = new ArrayList<>();
    for (KeyValueType type : backend.keyValueTypes()) {
      all.add(new Measured(type, filled(type), new double[rounds]));
    }
    for (int round = 0; round < rounds; round++) {
      for (Measured measured : all) {
        long before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        attend(measured.state);
        long after = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        measured.milliseconds[round] = (after - before) / 1e6;
      }
    }
    System.out.printf("%8s %8s %12s%n", "kv cache", "context", "median ms");
    for (Measured measured : all) {
      measured.state.close();
      System.out.printf(
          Locale.ROOT,
          "%8s %8d %12.2f%n",
          measured.type.word(),
          context,
          median(measured.milliseconds));
    }
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  /** A state whose pages hold a whole context, and the query of its last token. */
  private DeviceState filled(KeyValueType type) {
    StateLayout layout =
        new StateLayout(
            shape.layers,
            shape.keyValueHeads,
            shape.headDim,
            type,
            PAGE_TOKENS,
            pages.size(),
            0,
            4,
            64,
            2,
            16,
            16,
            1,
            0,
            CHUNK);
    int width = shape.heads * shape.headDim;
    ModelShape model = new ModelShape(64, shape.heads, shape.headDim, width, 1, 1, 64, 64, CHUNK);
    DeviceState state = backend.openState(layout, model, limits);
    for (int from = 0; from < context; from += CHUNK) {
      append(state, from, Math.min(CHUNK, context - from));
    }
    append(state, context - 1, 1);
    return state;
  }

  private void append(DeviceState state, int position, int count) {
    ComputePass pass = backend.begin(rows(position, count), state);
    AttentionOperands first = layers.getFirst();
    pass.embed(queries, first.queryAndGate());
    pass.embed(keys, first.key());
    for (AttentionOperands layer : layers) {
      pass.prepareAttention(layer);
    }
    pass.submit().await();
  }

  private void attend(DeviceState state) {
    ComputePass pass = backend.begin(rows(context - 1, 1), state);
    for (AttentionOperands layer : layers) {
      pass.attend(layer);
    }
    pass.submit().await();
  }

  private RowPlan rows(int position, int count) {
    int[] tokens = new int[count];
    Arrays.setAll(tokens, i -> (position + i) % CHUNK);
    plan.clear();
    plan.add(tokens, 0, count, position, pages, 0, 0, RowPlan.NO_SAMPLING);
    return plan;
  }
}
