package dev.lily.engine.backend.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.Availability;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendProvider;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.TensorUse;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.MemorySegment;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CpuBackendProviderTest {
  private static final ModelShape SHAPE = new ModelShape(64, 4, 32, 64, 8, 2, 32, 32, 100);
  private static final PassLimits LIMITS = new PassLimits(16, 2, 2, 1000);

  private static StateLayout layout(int pages) {
    return new StateLayout(1, 2, 32, 16, pages, 1, 4, 128, 4, 16, 16, 2, 2, 100);
  }

  @Test
  void isFoundAsAService() {
    assertThat(ServiceLoader.load(BackendProvider.class))
        .filteredOn(provider -> provider.id().equals("cpu"))
        .singleElement()
        .satisfies(
            provider ->
                assertThat(provider.availability()).isInstanceOf(Availability.Available.class));
  }

  @Test
  void saysWhatItRunsOn() {
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(3, "scalar"))) {
      assertThat(backend.id()).isEqualTo("cpu");
      assertThat(backend.device().detail()).isEqualTo("scalar, 3 threads");
      assertThat(backend.device().memoryBudgetBytes()).isPositive();
      assertThat(backend.maxPassesInFlight()).isEqualTo(1);
    }
  }

  @Test
  void takesTheProcessorsWhenNoThreadsAreAskedFor() {
    try (Backend backend = new CpuBackendProvider().open(BackendOptions.DEFAULT)) {
      int processors = Runtime.getRuntime().availableProcessors();
      assertThat(backend.device().detail())
          .contains(processors == 1 ? "1 thread" : processors + " threads");
    }
  }

  @Test
  void tellsTheBytesOfAStateBeforeItIsOpened() {
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"))) {
      try (DeviceState state = backend.openState(layout(5), SHAPE, LIMITS)) {
        assertThat(state.bytes()).isEqualTo(backend.stateBytes(layout(5)));
      }
      assertThat(backend.workspaceBytes(layout(5), SHAPE, LIMITS)).isPositive();
      assertThat(backend.tensorBytes(TensorUse.HIDDEN, 3, 5)).isEqualTo(60);
    }
  }

  @ParameterizedTest
  @CsvSource({"FP32, 12288", "BF16, 6144", "INT8, 3584"})
  void countsAPageByWhatKeysAndValuesAreKeptAs(KeyValueType type, long bytes) {
    // 2 heads of 32 dimensions: keys for 32 tokens, values for 16, int8 with 2 x 32 scales.
    StateLayout one = layout(1).with(type);
    StateLayout two = layout(2).with(type);
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"));
        CpuState state = (CpuState) backend.openState(one, SHAPE, LIMITS)) {
      assertThat(backend.stateBytes(two) - backend.stateBytes(one)).isEqualTo(bytes);
      long before = state.allocatedBytes();
      state.pages().prepare(0);
      assertThat(state.allocatedBytes() - before).isEqualTo(bytes);
    }
  }

  @Test
  void takesMemoryOnFirstUseAndAsMuchAsThePlanCounts() {
    StateLayout layout = layout(100);
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"));
        CpuState state = (CpuState) backend.openState(layout, SHAPE, LIMITS)) {
      long atFirst = state.allocatedBytes();
      state.clearSlot(1);
      state.clearSlot(1);
      assertThat(state.allocatedBytes() - atFirst).isEqualTo(layout.slotElements() * Float.BYTES);
      state.copySlot(1, 0);
      for (int page = 0; page < layout.numPages(); page++) {
        state.pages().prepare(page);
      }
      assertThat(state.allocatedBytes() - atFirst)
          .isEqualTo(
              2 * layout.slotElements() * Float.BYTES + 100L * KeyValuePages.pageBytes(layout));
      assertThat(state.allocatedBytes())
          .isEqualTo(state.bytes())
          .isEqualTo(backend.stateBytes(layout));
    }
  }

  @Test
  void refusesToReadWhatWasNeverWritten() {
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"))) {
      DeviceState state = backend.openState(layout(2), SHAPE, LIMITS);
      assertThatThrownBy(() -> state.copySlot(0, 1)).isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> state.copyPage(0, 1)).isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void freesItsStatesWhenItIsClosed() {
    DeviceState state;
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"))) {
      state = backend.openState(layout(1), SHAPE, LIMITS);
      state.clearSlot(0);
    }
    assertThatThrownBy(() -> state.clearSlot(0)).isInstanceOf(IllegalStateException.class);
    state.close();
  }

  @Test
  void refusesARowThatAsksForATokenNeverSampled() {
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"))) {
      MemorySegment values = MemorySegment.ofArray(new byte[100 * 4 * Float.BYTES]);
      Matrix embedding =
          backend.matrix(new MatrixSource.Dense("embed", 1, 100, 4, DType.F32, 1600, values));
      Tensor x = backend.tensor(16, 4);
      DeviceState state = backend.openState(layout(1), SHAPE, LIMITS);
      state.beginSampling(1, SamplingParameters.of(SamplingOptions.GREEDY, 0, -1), new int[0]);
      for (int slot : new int[] {1, RowPlan.NO_SAMPLING}) {
        RowPlan plan = new RowPlan(LIMITS);
        plan.add(new int[] {RowPlan.PREVIOUS_TOKEN}, 0, 1, 0, new PageTable(), 0, 0, slot);
        ComputePass pass = backend.begin(plan, state);
        assertThatThrownBy(() -> pass.embed(embedding, x))
            .isInstanceOf(BackendException.class)
            .hasMessageContaining("sampling slot " + slot);
      }
    }
  }

  @Test
  void refusesATensorThatCannotBe() {
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"))) {
      assertThatThrownBy(() -> backend.tensor(1 << 20, 1 << 20))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("-Xmx");
    }
  }

  @Test
  void refusesAStateThatCannotBe() {
    try (Backend backend = new CpuBackendProvider().open(new BackendOptions(1, "scalar"))) {
      PassLimits limits = new PassLimits(1 << 24, 2, 2, 1000);
      assertThatThrownBy(() -> backend.openState(layout(1), SHAPE, limits))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("Lower the context length");
    }
  }
}
