package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.StackedProjection;
import java.util.List;

/**
 * Grouped-query attention with per-head norms, partial rotary embedding and an output gate: {@code
 * branch = o_proj(attend(n) · sigmoid(gate))}.
 */
final class GatedAttention implements TokenMixer {
  private final StackedProjection input;
  private final AttentionOperands attention;
  private final Matrix output;
  private final Workspace workspace;

  GatedAttention(
      Qwen35Config config, Qwen35Weights.Attention weights, int layer, Workspace workspace) {
    this.workspace = workspace;
    input =
        new StackedProjection(
            workspace.n(),
            List.of(weights.queryAndGate(), weights.key(), weights.value()),
            List.of(workspace.queryAndGate(), workspace.key(), workspace.value()));
    attention =
        new AttentionOperands(
            layer,
            config.numAttentionHeads(),
            config.numKeyValueHeads(),
            config.headDim(),
            config.rotaryDim(),
            config.ropeTheta(),
            workspace.queryAndGate(),
            workspace.key(),
            workspace.value(),
            weights.queryGain(),
            weights.keyGain(),
            config.rmsNormEps(),
            workspace.query(),
            workspace.gate(),
            workspace.attended());
    output = weights.output();
  }

  @Override
  public void forward(ComputePass pass) {
    pass.projectStack(input);
    pass.prepareAttention(attention);
    pass.attend(attention);
    pass.project(workspace.attended(), output, workspace.branch());
  }
}
