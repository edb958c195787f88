package dev.lily.engine;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.model.qwen35moe.Qwen35Config;

/** The engine's own plan of memory, for tests of other modules. */
public final class MemoryPlans {
  private MemoryPlans() {}

  /**
   * Plans a model that need not exist.
   *
   * @param backend only its budget and its sizes are asked for
   * @throws ModelDoesNotFitException as the engine does
   */
  public static MemoryPlan plan(
      Qwen35Config config,
      Backend backend,
      EngineOptions options,
      long weightBytes,
      int vocabulary) {
    return new MemoryPlanner(config, backend, options, weightBytes, vocabulary).plan().plan();
  }
}
