package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * What a decode step of Qwen3.6-35B-A3B costs the host and the GPU in dispatches, barriers and
 * messages. The layers share one set of weights, and the double does not run the kernels.
 */
@ExtendWith(MetalDoubleExtension.class)
class DecodeCostTest {
  private static final int HIDDEN = 2048;
  private static final int VOCABULARY = 248_320;
  private static final int DELTA_LAYERS = 30;
  private static final int ATTENTION_LAYERS = 10;
  private static final float EPS = 1e-6f;
  private static final int PAGE_TOKENS = 32;
  private static final StateLayout LAYOUT =
      new StateLayout(
          ATTENTION_LAYERS,
          2,
          256,
          PAGE_TOKENS,
          4,
          DELTA_LAYERS,
          4,
          8192,
          32,
          128,
          128,
          1,
          1,
          VOCABULARY);
  private static final ModelShape SHAPE =
      new ModelShape(HIDDEN, 16, 256, 4096, 256, 8, 512, 512, VOCABULARY);
  private static final PassLimits LIMITS = new PassLimits(2, 1, 1, 128);

  private MetalBackend backend;
  private MemorySegment weights;
  private Tensor x;
  private Tensor n;
  private Tensor branch;
  private Tensor gain;

  @BeforeEach
  void open(MetalDouble metal) {
    metal.useKernels();
    backend = (MetalBackend) new MetalBackendProvider().open(BackendOptions.DEFAULT);
    // Pages that are never touched take no memory.
    weights = Arena.ofAuto().allocate((long) VOCABULARY * HIDDEN / 2, 1 << 14);
    backend.mapWeights(weights);
    x = tensor(HIDDEN);
    n = tensor(HIDDEN);
    branch = tensor(HIDDEN);
    gain = constant(HIDDEN);
  }

  private Tensor tensor(int columns) {
    return backend.tensor(LIMITS.maxRows(), columns);
  }

  private Tensor constant(int size) {
    return backend.constant(new float[size]);
  }

  private Matrix matrix(int bits, int numMatrices, int rows, int columns) {
    long elements = (long) numMatrices * rows * columns;
    MemorySegment groups = weights.asSlice(0, elements / 64 * 2);
    return backend.matrix(
        new MatrixSource.Affine(
            "weights",
            numMatrices,
            rows,
            columns,
            64,
            bits,
            weights.asSlice(0, elements * bits / 8),
            groups,
            groups));
  }

  private StackedProjection stack(Tensor... outputs) {
    List<Matrix> matrices =
        Arrays.stream(outputs).map(out -> matrix(4, 1, out.columns(), HIDDEN)).toList();
    return new StackedProjection(n, matrices, List.of(outputs));
  }

  private ExpertsOperands experts() {
    return new ExpertsOperands(
        8,
        n,
        matrix(8, 1, 256, HIDDEN),
        matrix(4, 256, 512, HIDDEN),
        matrix(4, 256, 512, HIDDEN),
        matrix(4, 256, HIDDEN, 512),
        matrix(4, 1, 512, HIDDEN),
        matrix(4, 1, 512, HIDDEN),
        matrix(4, 1, HIDDEN, 512),
        matrix(8, 1, 1, HIDDEN),
        tensor(256),
        branch);
  }

  private GatedDeltaOperands delta() {
    return new GatedDeltaOperands(
        0,
        16,
        32,
        128,
        128,
        4,
        tensor(8192),
        tensor(4096),
        tensor(32),
        tensor(32),
        constant(8192 * 4),
        constant(32),
        constant(32),
        constant(128),
        EPS,
        tensor(4096));
  }

  private AttentionOperands attention() {
    return new AttentionOperands(
        0,
        16,
        2,
        256,
        64,
        1e7,
        tensor(8192),
        tensor(512),
        tensor(512),
        constant(256),
        constant(256),
        EPS,
        tensor(4096),
        tensor(4096),
        tensor(4096));
  }

  @Test
  void staysBelowTheDispatchesAndBarriersAimedAt(MetalDouble metal) {
    metal.set("run", 0);
    try (MetalBackend _ = backend;
        DeviceState state = backend.openState(LAYOUT, SHAPE, LIMITS)) {
      GatedDeltaOperands delta = delta();
      AttentionOperands attention = attention();
      StackedProjection deltaInputs = stack(delta.qkv(), delta.z(), delta.a(), delta.b());
      StackedProjection attentionInputs =
          stack(attention.queryAndGate(), attention.key(), attention.value());
      Matrix deltaOutput = matrix(4, 1, HIDDEN, 4096);
      ExpertsOperands experts = experts();
      LogitsOperands head =
          new LogitsOperands(
              tensor(HIDDEN),
              gain,
              EPS,
              matrix(4, 1, VOCABULARY, HIDDEN),
              tensor(HIDDEN),
              tensor(VOCABULARY));
      state.beginSampling(0, SamplingParameters.of(SamplingOptions.GREEDY, 0, -1), new int[0]);
      RowPlan plan = new RowPlan(LIMITS);
      PageTable pages = new PageTable();
      pages.add(0);
      plan.add(new int[] {RowPlan.PREVIOUS_TOKEN}, 0, 1, 20, pages, 0, 1, 0);
      long messages = metal.get("messages");
      MetalPass pass = (MetalPass) backend.begin(plan, state);
      pass.embed(head.lmHead(), x);
      for (int layer = 0; layer < DELTA_LAYERS + ATTENTION_LAYERS; layer++) {
        pass.addNormalize(x, layer == 0 ? null : branch, gain, EPS, n);
        if (layer % 4 != 3) {
          pass.projectStack(deltaInputs);
          pass.gatedDelta(delta);
          pass.project(delta.y(), deltaOutput, branch);
        } else {
          pass.projectStack(attentionInputs);
          pass.prepareAttention(attention);
          pass.attend(attention);
          pass.project(attention.y(), deltaOutput, branch);
        }
        pass.addNormalize(x, branch, gain, EPS, n);
        pass.experts(experts);
      }
      pass.gatherRows(x, branch, head.rows());
      pass.logits(head);
      pass.sample(head.logits());
      pass.submit().await();
      messages = metal.get("messages") - messages;
      System.out.printf(
          "A decode step of the 35B on Metal: %d dispatches, %d barriers, %d messages%n",
          pass.numDispatches(), pass.numBarriers(), messages);
      assertThat(pass.numDispatches()).isLessThanOrEqualTo(350);
      assertThat(pass.numBarriers()).isLessThanOrEqualTo(260);
    }
  }
}
