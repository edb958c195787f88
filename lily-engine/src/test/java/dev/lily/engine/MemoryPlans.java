package dev.lily.engine;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.model.qwen35moe.Qwen35Config;

/** The engine's own plan of memory, for tests of other modules. */
public final class MemoryPlans {
  private MemoryPlans() {}

  /** A plan with the sizes it stands for. */
  public record Sizes(MemoryPlan plan, StateLayout layout, PassLimits limits) {}

  /**
   * Plans a model that need not exist.
   *
   * @param backend only its budget and its sizes are asked for
   * @throws ModelDoesNotFitException as the engine does
   */
  public static Sizes plan(
      Qwen35Config config,
      Backend backend,
      EngineOptions options,
      long weightBytes,
      int vocabulary) {
    MemoryPlanner.Sizes sizes =
        new MemoryPlanner(config, backend, options, weightBytes, vocabulary).plan();
    return new Sizes(sizes.plan(), sizes.layout(), sizes.limits());
  }
}
