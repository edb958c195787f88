package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.ComputePass;

/** The part of a layer that mixes tokens: reads {@code n}, writes {@code branch}. */
sealed interface TokenMixer permits GatedAttention, GatedDeltaNet {
  void forward(ComputePass pass);
}
