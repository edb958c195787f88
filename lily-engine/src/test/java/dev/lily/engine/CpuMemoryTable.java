package dev.lily.engine;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendSelector;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The memory table of {@code docs/backends.md} for Qwen3.6-35B-A3B on the CPU, from the engine's
 * own planner and the back end's own sizes.
 */
final class CpuMemoryTable {
  /** Scratch grows with them. */
  private static final int THREADS = 8;

  private static final double GIB = 1L << 30;

  /**
   * What a user may ask for on which machine.
   *
   * @param memoryGib of the machine, of which the Java heap takes a quarter by default
   */
  record Load(int memoryGib, int context, int sessions) {
    /** The plan under the default limit. */
    MemoryPlans.Sizes plan(Backend cpu) {
      EngineOptions options =
          EngineOptions.builder(Path.of("Qwen3.6-35B-A3B"))
              .contextLength(context)
              .maxSessions(sessions)
              .memoryLimitBytes((long) (0.75 * memoryGib * GIB))
              .build();
      return MemoryPlans.plan(
          Published35b.CONFIG, cpu, options, Published35b.weightBytes(), Published35b.VOCABULARY);
    }
  }

  private CpuMemoryTable() {}

  static Backend open() {
    return BackendSelector.select("cpu").provider().open(new BackendOptions(THREADS, "scalar"));
  }

  static List<Load> loads() {
    List<Load> loads = new ArrayList<>();
    for (int memory : new int[] {24, 32, 48, 64, 128}) {
      loads.add(new Load(memory, 16_384, 1));
      loads.add(new Load(memory, 32_768, 8));
      loads.add(new Load(memory, 131_072, 4));
      loads.add(new Load(memory, 262_144, 1));
    }
    return loads;
  }

  static List<String> lines() {
    List<String> lines = new ArrayList<>();
    lines.add(
        "| machine | may use | context × sessions | weights | scratch | states | snapshots | KV cache | total |");
    lines.add("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    try (Backend cpu = open()) {
      for (Load load : loads()) {
        lines.add(
            "| %d GB | %s | %,d × %d | %s |"
                .formatted(
                    load.memoryGib,
                    gibibytes((long) (0.75 * load.memoryGib * GIB)),
                    load.context,
                    load.sessions,
                    parts(load, cpu)));
      }
    }
    return lines;
  }

  private static String parts(Load load, Backend cpu) {
    MemoryPlan plan;
    try {
      plan = load.plan(cpu).plan();
    } catch (ModelDoesNotFitException e) {
      return " |  |  |  |  | does not fit";
    }
    return String.join(
        " | ",
        gibibytes(plan.weightBytes()),
        gibibytes(plan.scratchBytes()),
        gibibytes(plan.stateBytes()),
        gibibytes(plan.snapshotBytes()),
        gibibytes(plan.kvCacheBytes()),
        gibibytes(plan.totalBytes()));
  }

  private static String gibibytes(long bytes) {
    return String.format(Locale.ROOT, "%.2f GiB", bytes / GIB);
  }
}
