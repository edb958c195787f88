package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Every barrier of a pass is there for a reason: without it the hazard checker complains. */
@ExtendWith(MetalDoubleExtension.class)
class BarrierTest {
  private static final int[] PROMPT = {5, 80, 31, 2, 47};

  private final PageTable pages = new PageTable();
  private final RowPlan plan = new RowPlan(TinyModel.LIMITS);

  private void forward(TinyModel model, int position, int... tokens) {
    plan.clear();
    plan.add(tokens, 0, tokens.length, position, pages, 0, 1, 0);
    model.forward(plan, null);
  }

  /** Barriers of a pass that can be dropped unnoticed. */
  private List<Long> idleBarriers(MetalDouble metal, Runnable pass) {
    metal.set("dropBarrier", -1);
    long before = metal.get("barriers");
    int notes = metal.notes().size();
    pass.run();
    long barriers = metal.get("barriers") - before;
    assertThat(barriers).isPositive();
    assertThat(metal.violations()).isEmpty();
    assertThat(metal.notes()).hasSize(notes);
    List<Long> idle = new ArrayList<>();
    for (long barrier = 0; barrier < barriers; barrier++) {
      metal.set("dropBarrier", metal.get("barriers") + barrier); // counted since the start
      pass.run();
      if (metal.takeViolations().isEmpty()) {
        idle.add(barrier);
      }
    }
    metal.set("dropBarrier", -1);
    return idle;
  }

  @Test
  void noneCanBeDroppedUnnoticed(MetalDouble metal) {
    metal.useKernels();
    pages.add(3);
    try (TinyModel model = new TinyModel(new MetalBackendProvider().open(BackendOptions.DEFAULT))) {
      model.state().clearSlot(0);
      model
          .state()
          .beginSampling(0, SamplingParameters.of(SamplingOptions.GREEDY, 0, 3), new int[0]);
      assertThat(idleBarriers(metal, () -> forward(model, 0, PROMPT))).as("prefill").isEmpty();
      assertThat(idleBarriers(metal, () -> forward(model, 5, RowPlan.PREVIOUS_TOKEN)))
          .as("decode")
          .isEmpty();
    }
  }
}
