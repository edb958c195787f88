package dev.lily.engine.checkpoint;

import java.util.List;

/**
 * Parts of a checkpoint beside the text decoder, which Lily never reads: the vision encoder and
 * multi-token prediction. Their tensors must lie inside the file like all others, but may have any
 * dtype and need not agree with the quantisation settings.
 */
final class UnusedTensors {
  private static final List<String> PREFIXES = List.of("vision_tower.", "model.visual.", "mtp.");

  private UnusedTensors() {}

  static boolean contain(String name) {
    return PREFIXES.stream().anyMatch(name::startsWith);
  }
}
