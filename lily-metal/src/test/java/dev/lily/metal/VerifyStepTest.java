package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A draft is verified by one plan: the token that never left the device, then the drafted ones, all
 * with logits. Such rows have the bits that their tokens have in a prompt.
 */
@ExtendWith(MetalDoubleExtension.class)
class VerifyStepTest {
  private static final int V = TinyModel.VOCABULARY;
  private static final int[] PROMPT = {5, 80, 31, 2, 47, 66, 9};
  private static final int[] DRAFT = {33, 71, 8};

  private final RowPlan plan = new RowPlan(TinyModel.LIMITS);
  private final PageTable[] pages = new PageTable[3];
  private final int[] position = new int[3];

  private void begin(TinyModel model) {
    for (int s = 0; s < pages.length; s++) {
      pages[s] = new PageTable();
      pages[s].add(s);
      model.state().clearSlot(s);
      model
          .state()
          .beginSampling(s, SamplingParameters.of(SamplingOptions.GREEDY, 0, -1), new int[0]);
    }
  }

  private VerifyStepTest add(int sequence, int numLogitRows, int... tokens) {
    plan.add(
        tokens,
        0,
        tokens.length,
        position[sequence],
        pages[sequence],
        sequence,
        numLogitRows,
        sequence);
    position[sequence] += tokens.length;
    return this;
  }

  private PendingPass pass(TinyModel model, float[] logits) {
    PendingPass pass = model.forward(plan, logits);
    plan.clear();
    return pass;
  }

  private static int[] drafted(int first) {
    return new int[] {first, DRAFT[0], DRAFT[1], DRAFT[2]};
  }

  @Test
  void givesTheRowsOfADraftTheBitsOfAPrompt(MetalDouble metal) {
    metal.useKernels();
    try (TinyModel model = new TinyModel(new MetalBackendProvider().open(BackendOptions.DEFAULT))) {
      begin(model);
      add(0, 1, PROMPT).add(1, 1, PROMPT).add(2, 1, PROMPT);
      int token = pass(model, null).token(0);

      float[] read = new float[4 * V];
      PendingPass expected = add(0, 4, drafted(token)).pass(model, read);

      float[] verified = new float[4 * V];
      PendingPass actual = add(1, 4, drafted(RowPlan.PREVIOUS_TOKEN)).pass(model, verified);
      assertThat(verified).containsExactly(read);
      for (int i = 0; i < 4; i++) {
        assertThat(actual.token(i)).isEqualTo(expected.token(i)).isNotNegative();
      }

      // Beside a decode row, and with the rows in the same place or another on the device.
      float[] beside = new float[5 * V];
      add(0, 1, RowPlan.PREVIOUS_TOKEN)
          .add(2, 4, drafted(RowPlan.PREVIOUS_TOKEN))
          .pass(model, beside);
      assertThat(Arrays.copyOfRange(beside, V, 5 * V)).containsExactly(read);

      // The states that it leaves are those of the prompt, too.
      float[] next = new float[V];
      add(1, 1, RowPlan.PREVIOUS_TOKEN).pass(model, next);
      assertThat(next).containsExactly(Arrays.copyOf(beside, V));
    }
    assertThat(metal.notes()).filteredOn(note -> !note.contains("clear_words")).isEmpty();
  }
}
