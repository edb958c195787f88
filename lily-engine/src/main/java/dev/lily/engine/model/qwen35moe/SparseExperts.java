package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.ExpertsOperands;

/** Top-k routed experts and one gated shared expert: reads {@code n}, writes {@code branch}. */
final class SparseExperts {
  private final ExpertsOperands experts;

  SparseExperts(Qwen35Config config, Qwen35Weights.Experts weights, Workspace workspace) {
    experts =
        new ExpertsOperands(
            config.numExpertsPerToken(),
            workspace.n(),
            weights.router(),
            weights.gate(),
            weights.up(),
            weights.down(),
            weights.sharedGate(),
            weights.sharedUp(),
            weights.sharedDown(),
            weights.sharedExpertGate(),
            workspace.routerLogits(),
            workspace.branch());
  }

  void forward(ComputePass pass) {
    pass.experts(experts);
  }
}
