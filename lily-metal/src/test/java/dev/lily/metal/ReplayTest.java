package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A decode step that is sent from a recording is the step that would be recorded: the same commands
 * and the same bits, whatever ran in between.
 */
@ExtendWith(MetalDoubleExtension.class)
class ReplayTest {
  private static final int[] PROMPT = {5, 80, 31, 2, 47, 66, 9, 13, 21, 90, 4};

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
  }

  /** A model, its sequences, and what its steps gave: tokens, log-probabilities, commands. */
  private static final class Run implements AutoCloseable {
    private final MetalDouble metal;
    private final boolean isReplayed;
    private final TinyModel model;
    private final RowPlan plan = new RowPlan(TinyModel.LIMITS);
    private final PageTable[] pages = new PageTable[4];
    private final int[] position = new int[4];
    private final List<String> results = new ArrayList<>();
    private int numReplayed;

    Run(MetalDouble metal, boolean isReplayed) {
      this.metal = metal;
      this.isReplayed = isReplayed;
      model = new TinyModel(new MetalBackendProvider().open(BackendOptions.DEFAULT));
      for (int s = 0; s < pages.length; s++) {
        pages[s] = new PageTable();
        pages[s].add(s);
        begin(s, 3);
      }
    }

    /** Starts a sequence afresh. */
    void begin(int sequence, int topLogprobs) {
      model.state().clearSlot(sequence);
      model
          .state()
          .beginSampling(
              sequence,
              SamplingParameters.of(
                  SamplingOptions.builder().temperature(0.8).build(), 42 + sequence, topLogprobs),
              new int[0]);
      position[sequence] = 0;
    }

    void addPage(int sequence) {
      pages[sequence].add(4 * pages[sequence].size() + sequence);
    }

    Run prefill(int sequence, int... tokens) {
      plan.add(
          tokens, 0, tokens.length, position[sequence], pages[sequence], sequence, 1, sequence);
      position[sequence] += tokens.length;
      return this;
    }

    Run decode(int sequence) {
      return prefill(sequence, RowPlan.PREVIOUS_TOKEN);
    }

    /** Runs the plan, from a recording if there is one and it may. */
    void run() {
      boolean isDecode = plan.numRows() == plan.numSequences() && plan.token(0) < 0;
      PendingPass pass = isReplayed ? model.replay(plan) : null;
      if (pass != null) {
        numReplayed++;
      } else {
        pass = model.record(plan, null);
      }
      pass.await();
      StringBuilder result = new StringBuilder();
      for (int i = 0; i < plan.numLogitRows(); i++) {
        result.append(pass.token(i)).append(' ').append(pass.logprob(i));
        for (int rank = 0; rank < pass.numTopLogprobs(i); rank++) {
          result.append(' ').append(pass.topToken(i, rank));
          result.append(' ').append(pass.topLogprob(i, rank));
        }
        result.append('|');
      }
      results.add(result + (isDecode ? " commands " + metal.get("dispatches") : ""));
      plan.clear();
    }

    @Override
    public void close() {
      model.close();
    }
  }

  /**
   * One and two rows by turns, prompts in between, new pages, other slots, a mask, a new request.
   */
  private static void conversation(Run run) {
    run.prefill(0, PROMPT).run();
    for (int step = 0; step < 4; step++) {
      run.decode(0).run();
    }
    run.prefill(1, PROMPT).run();
    run.decode(0).decode(1).run();
    run.addPage(0);
    run.decode(0).decode(1).run();
    run.decode(0).decode(1).run();
    run.addPage(1);
    run.decode(1).prefill(2, 7, 8, 9).decode(0).run();
    run.decode(1).decode(0).run();
    run.decode(2).run();
    run.model.state().maskTokens(2, new long[] {0xff00L, 0});
    for (int step = 0; step < 3; step++) {
      run.decode(2).run();
    }
    run.model.state().maskTokens(2, null);
    run.decode(2).run();
    run.begin(3, -1);
    run.prefill(3, PROMPT).run();
    for (int step = 0; step < 3; step++) {
      run.decode(3).run(); // reports no log-probabilities
      run.decode(2).run();
    }
    run.model.state().copySlot(0, 5);
    run.decode(0).run();
    run.decode(0).run();
    run.decode(0).run();
  }

  @Test
  void givesTheBitsOfStepsThatAreRecorded(MetalDouble metal) {
    List<String> recorded;
    try (Run run = new Run(metal, false)) {
      conversation(run);
      recorded = run.results;
    }
    metal.reset();
    metal.useKernels();
    try (Run run = new Run(metal, true)) {
      conversation(run);
      assertThat(run.results).isEqualTo(recorded);
      assertThat(run.numReplayed).isGreaterThan(12);
    }
  }

  @Test
  void sendsTheCommandsThatWouldBeRecorded(MetalDouble metal) {
    metal.set("run", 0);
    metal.set("track", 0);
    try (Model35b model = new Model35b(new PassLimits(3, 2, 2, 5000))) {
      // From a few tokens to 5000 decode attention grows from one split to its most.
      for (int position : new int[] {5, 64, 130, 4095, 4998}) {
        for (int rows = 1; rows <= 2; rows++) {
          model.record(decode(model, rows, 3)).await();
          model.record(decode(model, rows, 3)).await(); // the other one of two in flight
          replay(model, decode(model, rows, position));
          long sent = metal.get("digest");
          replay(model, decode(model, rows, position));
          model.record(decode(model, rows, position)).await();
          assertThat(metal.get("digest"))
              .as("%d rows at %d", rows, position)
              .isEqualTo(sent)
              .isNotZero();
        }
      }
    }
  }

  private static void replay(Model35b model, RowPlan plan) {
    PendingPass replayed = model.replay(plan);
    assertThat(replayed).isNotNull();
    replayed.await();
  }

  private static RowPlan decode(Model35b model, int rows, int position) {
    RowPlan plan = model.plan();
    for (int r = 0; r < rows; r++) {
      model.addDecode(plan, r, position - r);
    }
    return plan;
  }
}
