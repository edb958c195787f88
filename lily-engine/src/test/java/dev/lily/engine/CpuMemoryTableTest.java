package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import com.sun.management.ThreadMXBean;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.model.qwen35moe.Qwen35Moe;
import dev.lily.engine.model.qwen35moe.Scratch;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The table of the documentation is what the planner says and what the back end allocates. */
class CpuMemoryTableTest {
  static List<CpuMemoryTable.Load> loads() {
    return CpuMemoryTable.loads();
  }

  @Test
  void isWhatThePlannerSays() throws IOException {
    DocumentedTable.check("backends.md", "cpu", CpuMemoryTable.lines());
  }

  /** Opens everything but the weights; pages and slots are counted by their blocks, not touched. */
  @ParameterizedTest
  @MethodSource("loads")
  void theBackEndAllocatesWhatIsPlanned(CpuMemoryTable.Load load) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (Backend cpu = CpuMemoryTable.open()) {
      MemoryPlans.Sizes sizes;
      try {
        sizes = load.plan(cpu);
      } catch (ModelDoesNotFitException e) {
        assertThat(e.plan().totalBytes()).isGreaterThan(e.plan().budgetBytes());
        return;
      }
      MemoryPlan plan = sizes.plan();
      long samplers = cpu.stateBytes(empty(sizes.layout()));
      long before = threads.getCurrentThreadAllocatedBytes();
      Scratch.allocate(Published35b.CONFIG, Published35b.VOCABULARY, sizes.limits(), cpu);
      try (DeviceState state =
          cpu.openState(sizes.layout(), Qwen35Moe.shape(Published35b.CONFIG), sizes.limits())) {
        long heap = threads.getCurrentThreadAllocatedBytes() - before;
        assertThat(heap)
            .as("scratch and samplers")
            .isCloseTo(plan.scratchBytes() + samplers, withinPercentage(2));
        assertThat(heap + state.bytes() - samplers)
            .as("all but the weights")
            .isCloseTo(plan.totalBytes() - plan.weightBytes(), withinPercentage(2));
        assertThat(state.bytes())
            .isEqualTo(plan.kvCacheBytes() + plan.stateBytes() + plan.snapshotBytes());
        assertThat(state.allocatedBytes()).as("nothing was used").isEqualTo(samplers);
      }
      assertThat(plan.totalBytes()).isLessThanOrEqualTo(plan.budgetBytes());
    }
  }

  private static StateLayout empty(StateLayout layout) {
    return new StateLayout(
        layout.numAttentionLayers(),
        layout.numKeyValueHeads(),
        layout.headDim(),
        layout.pageTokens(),
        0,
        layout.numDeltaLayers(),
        layout.convKernel(),
        layout.convDim(),
        layout.numValueHeads(),
        layout.keyDim(),
        layout.valueDim(),
        0,
        layout.numSamplingSlots(),
        layout.vocabularySize());
  }
}
