package dev.lily.metal;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.MemoryPlan;
import dev.lily.engine.MemoryPlans;
import dev.lily.engine.ModelDoesNotFitException;
import dev.lily.engine.Published35b;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DeviceInfo;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.TensorUse;
import dev.lily.metal.kernel.MetalTensor;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The memory tables of {@code docs/metal.md} for Qwen3.6-35B-A3B, from the engine's own planner and
 * this back end's own sizes.
 */
final class MemoryTable {
  private static final int[] CONTEXTS = {4096, 16_384, 32_768, 65_536, 131_072, 262_144};
  private static final int SESSIONS = 8; // the default
  private static final double MIB = 1 << 20;
  private static final double GIB = 1L << 30;

  /**
   * A size in which Macs are sold.
   *
   * @param memoryGib what is built in
   * @param older published default working set limit before macOS 26, GiB
   * @param newer the same from macOS 26 on
   * @param raisedMib the limit that the page suggests to set
   */
  private record Mac(int memoryGib, double older, double newer, int raisedMib) {}

  private static final List<Mac> MACS =
      List.of(
          new Mac(24, 16.00, 17.76, 20_480),
          new Mac(32, 21.33, 24.96, 26_624),
          new Mac(36, 27.00, 28.08, 30_720),
          new Mac(48, 36.00, 37.44, 40_960),
          new Mac(64, 48.00, 51.84, 57_344),
          new Mac(128, 96.00, 107.52, 118_784));

  /** What a user may ask for. */
  private record Load(int context, int sessions) {}

  private static final List<Load> LOADS =
      List.of(new Load(16_384, 1), new Load(32_768, 8), new Load(131_072, 4), new Load(262_144, 1));

  private MemoryTable() {}

  /** The tables by the names of their markers. */
  static Map<String, List<String>> all() {
    Map<String, List<String>> tables = new LinkedHashMap<>();
    tables.put("needs", needs());
    tables.put("limits", limits());
    tables.put("contexts", contexts());
    tables.put("plans", plans());
    return tables;
  }

  /** What a context takes. */
  private static List<String> needs() {
    List<String> lines = new ArrayList<>();
    lines.add(
        "| context | one conversation's KV cache | one session | eight sessions, at least | eight, all full |");
    lines.add("|--:|--:|--:|--:|--:|");
    for (int context : CONTEXTS) {
      MemoryPlan one = plan(context, 1, Long.MAX_VALUE);
      MemoryPlan eight = plan(context, SESSIONS, Long.MAX_VALUE);
      long seven = eight.kvCacheBytes() - one.kvCacheBytes();
      lines.add(
          row(
              number(context),
              number(Math.round(one.kvCacheBytes() / MIB)) + " MiB",
              gibibytes(one.totalBytes() / GIB),
              gibibytes((eight.totalBytes() - seven) / GIB),
              gibibytes(eight.totalBytes() / GIB)));
    }
    return lines;
  }

  /** What the machines allow. */
  private static List<String> limits() {
    List<String> lines = new ArrayList<>();
    lines.add(
        "| Mac | default before macOS 26 | default from macOS 26 | `N` to raise it to | left for the rest |");
    lines.add("|--:|--:|--:|--:|--:|");
    for (Mac mac : MACS) {
      lines.add(
          row(
              mac.memoryGib + " GB",
              published(mac.older),
              published(mac.newer),
              Integer.toString(mac.raisedMib),
              (mac.memoryGib - mac.raisedMib / 1024) + " GiB"));
    }
    return lines;
  }

  /** Which context fits which machine. */
  private static List<String> contexts() {
    List<String> lines = new ArrayList<>();
    List<String> head = new ArrayList<>(List.of("Mac"));
    for (int context : CONTEXTS) {
      head.add(number(context));
    }
    lines.add(row(head.toArray(String[]::new)));
    lines.add("|--:|" + ":-:|".repeat(CONTEXTS.length));
    for (Mac mac : MACS) {
      List<String> line = new ArrayList<>(List.of(mac.memoryGib + " GB"));
      for (int context : CONTEXTS) {
        line.add(verdict(mac, context));
      }
      lines.add(row(line.toArray(String[]::new)));
    }
    return lines;
  }

  /** What is planned with the prefix cache, under the limit of macOS 26 or else the raised one. */
  private static List<String> plans() {
    List<String> lines = new ArrayList<>();
    lines.add(
        "| Mac | limit | context × sessions | weights | scratch | states | snapshots | KV cache | total |");
    lines.add("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (Mac mac : MACS) {
      long limit = limit(mac);
      for (Load load : LOADS) {
        List<String> line = new ArrayList<>();
        line.add(mac.memoryGib + " GB");
        line.add(published(limit / GIB));
        line.add(number(load.context) + " × " + load.sessions);
        line.addAll(parts(load, limit));
        lines.add(row(line.toArray(String[]::new)));
      }
    }
    return lines;
  }

  private static List<String> parts(Load load, long limit) {
    MemoryPlan plan;
    try {
      plan = plan(load.context, load.sessions, limit, null);
    } catch (ModelDoesNotFitException e) {
      return List.of("", "", "", "", "", "does not fit");
    }
    return List.of(
        gibibytes(plan.weightBytes() / GIB),
        published(plan.scratchBytes() / GIB),
        published(plan.stateBytes() / GIB),
        published(plan.snapshotBytes() / GIB),
        published(plan.kvCacheBytes() / GIB),
        gibibytes(plan.totalBytes() / GIB));
  }

  private static String row(String... cells) {
    return "| " + String.join(" | ", cells) + " |";
  }

  private static String number(long value) {
    return String.format(Locale.ROOT, "%,d", value);
  }

  private static String published(double gibibytes) {
    return String.format(Locale.ROOT, "%.2f GiB", gibibytes);
  }

  private static String gibibytes(double value) {
    return String.format(Locale.ROOT, "%.1f GiB", value);
  }

  private static String verdict(Mac mac, int context) {
    if (fits(context, SESSIONS, mac.older * GIB)) {
      return "yes";
    }
    if (fits(context, SESSIONS, mac.newer * GIB)) {
      return "from macOS 26";
    }
    if (fits(context, SESSIONS, mac.raisedMib * MIB)) {
      return "raise";
    }
    return fits(context, 1, mac.raisedMib * MIB) ? "raise, 1 session" : "no";
  }

  private static boolean fits(int context, int sessions, double budget) {
    try {
      plan(context, sessions, (long) budget);
      return true;
    } catch (ModelDoesNotFitException e) {
      return false;
    }
  }

  /** The plans of the table, but for those that do not fit. */
  static List<MemoryPlans.Sizes> fitting() {
    List<MemoryPlans.Sizes> fitting = new ArrayList<>();
    for (Mac mac : MACS) {
      for (Load load : LOADS) {
        try {
          fitting.add(sizes(load.context, load.sessions, limit(mac), null));
        } catch (ModelDoesNotFitException _) {
          // The table says so.
        }
      }
    }
    return fitting;
  }

  /** That of macOS 26, or the raised one where the weights do not fit under it. */
  private static long limit(Mac mac) {
    return (long)
        (mac.newer * GIB > Published35b.fileBytes() ? mac.newer * GIB : mac.raisedMib * MIB);
  }

  private static MemoryPlan plan(int context, int sessions, long budget) {
    return plan(context, sessions, budget, 0L);
  }

  private static MemoryPlan plan(
      int context, int sessions, long budget, @Nullable Long cacheBytes) {
    return sizes(context, sessions, budget, cacheBytes).plan();
  }

  private static MemoryPlans.Sizes sizes(
      int context, int sessions, long budget, @Nullable Long cacheBytes) {
    EngineOptions options =
        EngineOptions.builder(Path.of("Qwen3.6-35B-A3B"))
            .contextLength(context)
            .maxSessions(sessions)
            .cacheBytes(cacheBytes)
            .build();
    return MemoryPlans.plan(
        Published35b.CONFIG,
        new Sizes(budget),
        options,
        Published35b.fileBytes(),
        Published35b.VOCABULARY);
  }

  /** This back end's sizes without a device. */
  record Sizes(long budget) implements Backend {
    @Override
    public DeviceInfo device() {
      return new DeviceInfo("a Mac", "", budget);
    }

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
      return MetalState.bytes(layout);
    }

    @Override
    public long workspaceBytes(StateLayout layout, ModelShape shape, PassLimits limits) {
      return MetalState.workspaceBytes(layout, shape, limits);
    }

    private static UnsupportedOperationException notOpen() {
      return new UnsupportedOperationException("there is no device");
    }

    @Override
    public String id() {
      return MetalBackendProvider.ID;
    }

    @Override
    public int maxPassesInFlight() {
      throw notOpen();
    }

    @Override
    public void mapWeights(MemorySegment file) {
      throw notOpen();
    }

    @Override
    public Matrix matrix(MatrixSource source) {
      throw notOpen();
    }

    @Override
    public Tensor constant(float... values) {
      throw notOpen();
    }

    @Override
    public Tensor tensor(int rows, int columns) {
      throw notOpen();
    }

    @Override
    public DeviceState openState(StateLayout layout, ModelShape shape, PassLimits limits) {
      throw notOpen();
    }

    @Override
    public ComputePass begin(RowPlan plan, DeviceState state) {
      throw notOpen();
    }

    @Override
    public void close() {}
  }
}
