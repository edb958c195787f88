package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.backend.contract.TinyModel.Variant;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every barrier of a pass is there for a reason: without it the hazard checker complains. */
@ExtendWith(MetalDoubleExtension.class)
class BarrierTest {
  private static final int[] PROMPT = {5, 80, 31, 2, 47};

  private final PageTable[] pages = new PageTable[3];
  private final RowPlan plan = new RowPlan(TinyModel.LIMITS);

  private BarrierTest add(int sequence, int position, int... tokens) {
    plan.add(tokens, 0, tokens.length, position, pages[sequence], sequence, 1, sequence);
    return this;
  }

  private BarrierTest decode(int sequence) {
    return add(sequence, PROMPT.length, RowPlan.PREVIOUS_TOKEN);
  }

  private void open(TinyModel model) {
    for (int s = 0; s < pages.length; s++) {
      pages[s] = new PageTable();
      pages[s].add(3 + s);
      model.state().clearSlot(s);
      model
          .state()
          .beginSampling(s, SamplingParameters.of(SamplingOptions.GREEDY, 0, 3), new int[0]);
      model.forward(add(s, 0, PROMPT).plan, null);
      plan.clear();
    }
  }

  private static TinyModel model(Variant variant) {
    return new TinyModel(new MetalBackendProvider().open(BackendOptions.DEFAULT), variant);
  }

  /** The double leaves out each barrier in turn when it checks what a pass did. */
  @ParameterizedTest
  @ValueSource(strings = {"regular", "irregular"})
  void noneCanBeLeftOutUnnoticed(String kind, MetalDouble metal) {
    metal.useKernels();
    Variant variant = kind.equals("regular") ? Variant.of(2025) : Variant.irregular(2025);
    try (TinyModel model = model(variant)) {
      open(model);
      metal.set("mutate", 1);
      check(metal, model, kind + ", a prompt", add(0, 0, PROMPT));
      check(metal, model, kind + ", one decode row", decode(0));
      check(metal, model, kind + ", two decode rows", decode(0).decode(1));
      check(
          metal,
          model,
          kind + ", a prompt between decode rows",
          decode(1).add(0, 0, PROMPT).decode(2));
    }
  }

  private void check(MetalDouble metal, TinyModel model, String what, BarrierTest planned) {
    int notes = metal.notes().size();
    long mutants = metal.get("mutants");
    model.forward(planned.plan, null);
    plan.clear();
    mutants = metal.get("mutants") - mutants;
    System.out.printf("Barriers left out in turn, each missed (%s): %d%n", what, mutants);
    assertThat(mutants).isGreaterThan(20);
    assertThat(metal.notes().stream().skip(notes)).as(what).isEmpty();
  }

  /** The same without trusting the double's own mutation, for one pass. */
  @Test
  void aStepRunWithoutAnyOfThemIsRefused(MetalDouble metal) {
    metal.useKernels();
    try (TinyModel model = model(Variant.of(2025))) {
      open(model);
      decode(0);
      long before = metal.get("barriers");
      model.forward(plan, null);
      long barriers = metal.get("barriers") - before;
      assertThat(barriers).isPositive();
      for (long barrier = 0; barrier < barriers; barrier++) {
        metal.set("dropBarrier", metal.get("barriers") + barrier); // counted since the start
        model.forward(plan, null);
        assertThat(metal.takeViolations()).as("without barrier %d", barrier).isNotEmpty();
      }
    }
  }
}
