package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.StackedProjection;
import java.util.List;

/**
 * Linear attention with a gated delta rule: {@code branch = out_proj(norm(deltaRule(conv(qkv))) ·
 * silu(z))}.
 */
final class GatedDeltaNet implements TokenMixer {
  private final StackedProjection input;
  private final GatedDeltaOperands delta;
  private final Matrix output;
  private final Workspace workspace;

  GatedDeltaNet(Qwen35Config config, Qwen35Weights.Delta weights, int layer, Workspace workspace) {
    this.workspace = workspace;
    input =
        new StackedProjection(
            workspace.n(),
            List.of(weights.queryKeyValue(), weights.z(), weights.a(), weights.b()),
            List.of(workspace.queryKeyValue(), workspace.z(), workspace.a(), workspace.b()));
    delta =
        new GatedDeltaOperands(
            layer,
            config.linearNumKeyHeads(),
            config.linearNumValueHeads(),
            config.linearKeyHeadDim(),
            config.linearValueHeadDim(),
            config.linearConvKernelDim(),
            workspace.queryKeyValue(),
            workspace.z(),
            workspace.a(),
            workspace.b(),
            weights.convWeight(),
            weights.aLog(),
            weights.dtBias(),
            weights.gain(),
            config.rmsNormEps(),
            workspace.delta());
    output = weights.output();
  }

  @Override
  public void forward(ComputePass pass) {
    pass.projectStack(input);
    pass.gatedDelta(delta);
    pass.project(workspace.delta(), output, workspace.branch());
  }
}
