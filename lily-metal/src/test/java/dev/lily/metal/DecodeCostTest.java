package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What a decode step of Qwen3.6-35B-A3B costs the host and the GPU: dispatches, barriers, messages,
 * microseconds, allocations. The double checks every command, but does not run the kernels.
 */
@ExtendWith(MetalDoubleExtension.class)
class DecodeCostTest {
  private static final PassLimits LIMITS = new PassLimits(2, 2, 2, 512);
  private static final int WARM_UP_STEPS = 1500;
  private static final int NUM_MEASURED = 101;
  private static final int MAX_ROUNDS = 200;

  private int position;

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
    metal.set("run", 0);
    position = 20;
  }

  private PendingPass step(Model35b model, boolean isReplayed) {
    RowPlan plan = model.plan();
    model.addDecode(plan, 0, position);
    position = position == 500 ? 20 : position + 1;
    return isReplayed ? model.forward(plan) : model.record(plan);
  }

  /** Least and median time of a step, from the plan to the commit. */
  private String micros(Model35b model, boolean isReplayed) {
    double[] micros = new double[NUM_MEASURED];
    for (int i = 0; i < WARM_UP_STEPS + NUM_MEASURED; i++) {
      long start = System.nanoTime();
      PendingPass pass = step(model, isReplayed);
      micros[i % NUM_MEASURED] = (System.nanoTime() - start) / 1e3;
      pass.await();
    }
    Arrays.sort(micros);
    return "%.0f us (median %.0f)".formatted(micros[0], micros[NUM_MEASURED / 2]);
  }

  @Test
  void staysBelowTheDispatchesBarriersAndMessagesAimedAt(MetalDouble metal) {
    try (Model35b model = new Model35b(LIMITS)) {
      step(model, false).await();
      step(model, false).await();
      long messages = metal.get("messages");
      step(model, true).await();
      messages = metal.get("messages") - messages;
      System.out.printf(
          "A decode step of the 35B on Metal: %d dispatches, %d barriers, %d messages;"
              + " host time on the double %s recorded, %s replayed%n",
          model.pass().numDispatches(),
          model.pass().numBarriers(),
          messages,
          micros(model, false),
          micros(model, true));
      assertThat(model.pass().numDispatches()).isLessThanOrEqualTo(350);
      assertThat(model.pass().numBarriers()).isLessThanOrEqualTo(260);
      assertThat(messages).isLessThanOrEqualTo(2000);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void allocatesNothingInSteadyState(boolean isReplayed) {
    try (Model35b model = new Model35b(LIMITS)) {
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long allocated = Long.MAX_VALUE;
      // The JIT compiles in the background: steady state is reached when a round allocates nothing.
      for (int round = 0; round < MAX_ROUNDS && allocated > 0; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        PendingPass last = step(model, isReplayed);
        for (int i = 0; i < 40; i++) {
          PendingPass next = step(model, isReplayed); // two in flight
          last.await();
          requireResult(last);
          last = next;
        }
        last.await();
        allocated = threads.getCurrentThreadAllocatedBytes() - before;
      }
      assertThat(allocated).as("bytes allocated by 41 decode steps").isZero();
    }
  }

  /** Reads what a scheduler reads. */
  private static void requireResult(PendingPass pass) {
    if (pass.token(0) < -1 || pass.deviceNanos() < 0 || pass.numTopLogprobs(0) != 0) {
      throw new AssertionError("not a result");
    }
  }
}
