package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.PassLimits;

/** A model's activations without the model, for tests of what they take. */
public final class Scratch {
  private Scratch() {}

  /** Bytes of a model's activations in the plan of memory. */
  public static long bytes(
      Qwen35Config config, int vocabulary, PassLimits limits, Backend backend) {
    return Workspace.bytes(config, vocabulary, limits, backend);
  }

  /** Allocates what a model would. */
  public static void allocate(
      Qwen35Config config, int vocabulary, PassLimits limits, Backend backend) {
    Workspace.allocate(config, vocabulary, limits, backend);
  }
}
