package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.ModelDoesNotFitException;
import dev.lily.engine.backend.Availability;
import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.StatePool;
import dev.lily.metal.device.CommandBufferException;
import dev.lily.metal.device.DeviceMemoryException;
import dev.lily.metal.device.DeviceUnavailableException;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import dev.lily.metal.device.ShaderCompilationException;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Failures of the device; the extension sees to it that nothing is left alive. */
@ExtendWith(MetalDoubleExtension.class)
class MetalBackendFailureTest {
  private final MetalBackendProvider provider = new MetalBackendProvider();

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useKernels();
  }

  private static RowPlan plan() {
    PageTable pages = new PageTable();
    pages.add(3);
    RowPlan plan = new RowPlan(TinyModel.LIMITS);
    plan.add(new int[] {1, 2}, 0, 2, 0, pages, 0, 1, RowPlan.NO_SAMPLING);
    return plan;
  }

  @ParameterizedTest
  @CsvSource({
    "2, Timeout",
    "3, PageFault",
    "4, SubmissionsIgnored",
    "8, OutOfMemory",
    "9, InvalidResource",
    "1, InternalFailure"
  })
  void reportsAFailedPassAndRunsTheNext(long code, String type, MetalDouble metal) {
    try (TinyModel model = new TinyModel(provider.open(BackendOptions.DEFAULT))) {
      model.state().clearSlot(0);
      metal.failRun(code, "injected");
      assertThatThrownBy(() -> model.forward(plan(), null))
          .isInstanceOf(CommandBufferException.class)
          .satisfies(e -> assertThat(e.getClass().getSimpleName()).isEqualTo(type));
      model.state().clearSlot(0);
      model.forward(plan(), new float[TinyModel.VOCABULARY]);
    }
  }

  /** The slot of a sequence is cleared in the pass with its first rows, and lost only with them. */
  @Test
  void aFailedPassSparesASequenceThatHadNoRowsInIt(MetalDouble metal) {
    try (TinyModel model = new TinyModel(provider.open(BackendOptions.DEFAULT))) {
      StatePool states = new StatePool(model.state());
      float[] expected = new float[TinyModel.VOCABULARY];
      try (SequenceState state = Objects.requireNonNull(states.open(2))) {
        model.forward(plan(state), expected);
      }
      SequenceState spared = Objects.requireNonNull(states.open(2));
      SequenceState unlucky = Objects.requireNonNull(states.open(2));
      metal.failRun(1, "injected");
      assertThatThrownBy(() -> model.forward(plan(unlucky), null))
          .isInstanceOf(CommandBufferException.class);
      float[] actual = new float[TinyModel.VOCABULARY];
      model.forward(plan(spared), actual);
      assertThat(actual).containsExactly(expected);
    }
  }

  private static RowPlan plan(SequenceState state) {
    state.reserve(2);
    RowPlan plan = new RowPlan(TinyModel.LIMITS);
    plan.add(
        new int[] {1, 2}, 0, 2, 0, state.pages(), state.recurrentSlot(), 1, RowPlan.NO_SAMPLING);
    return plan;
  }

  @Test
  void closesWhatItOpenedWhenAKernelIsRefused(MetalDouble metal) {
    metal.failNext("pipeline");
    assertThatExceptionOfType(ShaderCompilationException.class)
        .isThrownBy(() -> provider.open(BackendOptions.DEFAULT));
  }

  @Test
  void closesWhatItOpenedWhenThereIsNoQueue(MetalDouble metal) {
    metal.failNext("queue");
    assertThatExceptionOfType(DeviceUnavailableException.class)
        .isThrownBy(() -> provider.open(BackendOptions.DEFAULT));
  }

  @Test
  void refusesStateThatDoesNotFitAndNamesTheRemedy(MetalDouble metal) {
    metal.set("recommended", 1 << 20);
    try (MetalBackend backend = (MetalBackend) provider.open(BackendOptions.DEFAULT)) {
      assertThat(backend.device().memoryBudgetBytes()).isEqualTo(1 << 20);
      assertThatExceptionOfType(BackendException.class)
          .isThrownBy(() -> new TinyModel(backend))
          .withMessageContaining("iogpu.wired_limit_mb");
    }
  }

  @Test
  void keepsAllItsMemoryResidentWhileItIsOpen(MetalDouble metal) {
    long before = metal.get("allocated");
    try (TinyModel model = new TinyModel(provider.open(BackendOptions.DEFAULT))) {
      model.forward(plan(), null);
      assertThat(metal.get("resident")).isEqualTo(metal.get("allocated") - before).isPositive();
    }
    assertThat(metal.get("resident")).isZero();
  }

  @Test
  void refusesAModelThatDoesNotFitBeforeAnythingIsAllocated(MetalDouble metal) {
    metal.set("recommended", 16 << 20);
    EngineOptions options =
        EngineOptions.builder(Path.of(System.getProperty("lily.nano.dir")))
            .backend("metal")
            .contextLength(8192)
            .build();
    assertThatExceptionOfType(ModelDoesNotFitException.class)
        .isThrownBy(() -> LilyEngine.open(options))
        .withMessageContaining("only 16.0 MiB may be used")
        .withMessageContaining("sudo sysctl iogpu.wired_limit_mb=");
  }

  @Test
  void reportsAnAllocationThatMetalRefuses(MetalDouble metal) {
    try (MetalBackend backend = (MetalBackend) provider.open(BackendOptions.DEFAULT)) {
      metal.failNext("buffer");
      assertThatExceptionOfType(DeviceMemoryException.class)
          .isThrownBy(() -> backend.constant(1, 2));
    }
  }

  @Test
  void isAvailableWhereADeviceOpensAndSaysWhyElsewhere(MetalDouble metal) {
    assertThat(provider.availability()).isInstanceOf(Availability.Available.class);
    metal.set("family", 1006);
    assertThat(provider.availability())
        .isInstanceOfSatisfying(
            Availability.Unavailable.class,
            reason -> assertThat(reason.reason()).contains("M1 or newer"));
  }
}
