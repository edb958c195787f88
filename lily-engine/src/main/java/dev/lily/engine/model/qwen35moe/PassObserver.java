package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.Tensor;

/**
 * Sees the activations of a pass while it is recorded, and may {@link ComputePass#copyOut} them.
 * For tests and tools.
 */
@FunctionalInterface
interface PassObserver {
  /** Sees nothing. */
  PassObserver NONE = (pass, what, layer, tensor) -> {};

  /** What a tensor holds. */
  enum Activation {
    /** Residual stream before a layer. */
    LAYER_INPUT,
    /** What a layer's token mixer adds. */
    MIXER,
    /** Router logits of a layer. */
    ROUTER_LOGITS,
    /** What a layer's experts add. */
    EXPERTS,
    /** Rows that need logits, after the final norm. */
    FINAL_NORM,
    /** Logits. */
    LOGITS
  }

  void observe(ComputePass pass, Activation what, int layer, Tensor tensor);
}
