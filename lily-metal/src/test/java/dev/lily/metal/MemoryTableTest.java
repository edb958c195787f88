package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.withinPercentage;

import dev.lily.engine.DocumentedTable;
import dev.lily.engine.EngineOptions;
import dev.lily.engine.LoadedModel;
import dev.lily.engine.MemoryPlan;
import dev.lily.engine.MemoryPlans;
import dev.lily.engine.ModelLoader;
import dev.lily.engine.Published35b;
import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.TensorUse;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import dev.lily.engine.checkpoint.Checkpoint;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.qwen35moe.Qwen35Config;
import dev.lily.engine.model.qwen35moe.Qwen35Moe;
import dev.lily.engine.model.qwen35moe.Scratch;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import dev.lily.metal.device.MetalGpuExtension;
import dev.lily.metal.kernel.Recording;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The memory tables of the documentation are what the planner says. */
class MemoryTableTest {
  @ParameterizedTest
  @ValueSource(strings = {"needs", "limits", "contexts", "plans"})
  void isWhatThePlannerSays(String name) throws IOException {
    DocumentedTable.check("metal.md", name, MemoryTable.all().get(name));
  }

  /** The sum over the shapes of every text tensor of the published checkpoint. */
  @Test
  void countsTheWeightsOfThePublishedCheckpoint() {
    assertThat(Published35b.weightBytes()).isEqualTo(19_508_787_456L);
    assertThat(Published35b.fileBytes()).isEqualTo(20_401_929_952L);
  }

  @Nested
  @ExtendWith(MetalDoubleExtension.class)
  class WithTheDouble {
    private static final ModelShape SHAPE =
        new ModelShape(2048, 16, 256, 4096, 256, 8, 512, 512, 999);
    private static final PassLimits LIMITS = new PassLimits(17, 1, 1, 4096);

    private static StateLayout layout(int pages, int slots) {
      return new StateLayout(10, 2, 256, 32, pages, 30, 4, 8192, 32, 128, 128, slots, 1, 999);
    }

    private static long allocated(Backend backend, StateLayout layout, MetalDouble metal) {
      long before = metal.get("allocated");
      try (DeviceState state = backend.openState(layout, SHAPE, LIMITS)) {
        assertThat(state.bytes()).isEqualTo(backend.stateBytes(layout));
        return metal.get("allocated") - before;
      }
    }

    /** Recordings of decode steps are allocated when a step is first recorded. */
    private static long laterBytes(PassLimits limits) {
      return 2L * limits.maxSequences() * Recording.bytes();
    }

    @Test
    void allocatesWhatThePlanCounts(MetalDouble metal) {
      metal.useKernels();
      try (Backend backend = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
        for (StateLayout layout : new StateLayout[] {layout(1, 1), layout(33, 1), layout(1, 2)}) {
          assertThat(allocated(backend, layout, metal))
              .isCloseTo(
                  backend.stateBytes(layout)
                      + backend.workspaceBytes(layout, SHAPE, LIMITS)
                      - laterBytes(LIMITS),
                  withinPercentage(0.1));
        }
      }
    }

    /** Memory of the double is taken from the system only where it is touched. */
    @Test
    void allocatesWhatTheTableSays(MetalDouble metal) {
      metal.useKernels();
      metal.set("recommended", 1L << 40);
      ModelShape shape = Qwen35Moe.shape(Published35b.CONFIG);
      List<MemoryPlans.Sizes> plans = MemoryTable.fitting();
      assertThat(plans).hasSizeGreaterThan(15);
      try (Backend backend = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
        for (MemoryPlans.Sizes sizes : plans) {
          MemoryPlan plan = sizes.plan();
          long tensors =
              Scratch.bytes(Published35b.CONFIG, Published35b.VOCABULARY, sizes.limits(), backend);
          long before = metal.get("allocated");
          try (DeviceState state = backend.openState(sizes.layout(), shape, sizes.limits())) {
            long allocated = metal.get("allocated") - before + tensors;
            long states = plan.kvCacheBytes() + plan.stateBytes() + plan.snapshotBytes();
            assertThat(state.allocatedBytes()).isEqualTo(states);
            assertThat(allocated - states)
                .as("scratch of %s", plan)
                .isCloseTo(plan.scratchBytes(), withinPercentage(2));
            assertThat(allocated)
                .as("all but the weights of %s", plan)
                .isCloseTo(plan.totalBytes() - plan.weightBytes(), withinPercentage(2));
          }
        }
      }
    }

    /** Tensors are allocated by the first passes, in the types that are written to them. */
    @Test
    void passesOfAModelAllocateTheTensorsThatThePlanCounts(MetalDouble metal) {
      metal.useFastKernels();
      Path nano = Path.of(System.getProperty("lily.nano.dir"));
      EngineOptions options =
          EngineOptions.builder(nano).backend("metal").contextLength(128).maxSessions(2).build();
      try (LoadedModel loaded = ModelLoader.load(options);
          Checkpoint checkpoint = Checkpoint.open(nano);
          Backend backend = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
        LanguageModel model = loaded.model();
        Qwen35Config config = Qwen35Config.read(checkpoint.config(), nano.resolve("config.json"));
        long before = metal.get("allocated");
        run(model);
        assertThat(metal.get("allocated") - before)
            .isCloseTo(
                Scratch.bytes(config, model.layout().vocabularySize(), model.limits(), backend)
                    + laterBytes(model.limits()),
                withinPercentage(2));
      }
    }

    /** A prompt, and decode steps of one and of two sequences, twice each. */
    private static void run(LanguageModel model) {
      RowPlan plan = new RowPlan(model.limits());
      try (SequenceState first = Objects.requireNonNull(model.states().open(64));
          SequenceState second = Objects.requireNonNull(model.states().open(64))) {
        int[] prompt = IntStream.range(0, 20).toArray();
        step(model, plan, prompt, first, second);
        int[] previous = {RowPlan.PREVIOUS_TOKEN};
        for (int i = 0; i < 2; i++) {
          step(model, plan, previous, first);
        }
        for (int i = 0; i < 2; i++) {
          step(model, plan, previous, first, second);
        }
      }
    }

    private static void step(
        LanguageModel model, RowPlan plan, int[] tokens, SequenceState... sequences) {
      plan.clear();
      for (SequenceState sequence : sequences) {
        if (sequence.position() == 0) {
          model
              .states()
              .device()
              .beginSampling(
                  sequence.samplingSlot(),
                  SamplingParameters.of(SamplingOptions.GREEDY, 0, -1),
                  tokens);
        }
        sequence.reserve(tokens.length);
        plan.add(
            tokens,
            0,
            tokens.length,
            sequence.position(),
            sequence.pages(),
            sequence.recurrentSlot(),
            1,
            sequence.samplingSlot());
        sequence.advance(tokens.length);
      }
      model.forward(plan).await();
    }
  }

  @Nested
  @ExtendWith(MetalGpuExtension.class)
  class WithTheBackEnd {
    @Test
    void countsAsTheBackEndDoes() {
      StateLayout layout = new StateLayout(10, 2, 256, 32, 3, 30, 4, 8192, 32, 128, 128, 2, 2, 999);
      ModelShape shape = new ModelShape(2048, 16, 256, 4096, 256, 8, 512, 512, 999);
      PassLimits limits = new PassLimits(258, 2, 2, 4096);
      Backend sizes = new MemoryTable.Sizes(1);
      try (Backend metal = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
        assertThat(metal.stateBytes(layout)).isEqualTo(sizes.stateBytes(layout));
        assertThatExceptionOfType(UnsupportedKeyValueTypeException.class)
            .isThrownBy(() -> metal.stateBytes(layout.with(KeyValueType.INT8)));
        assertThat(metal.workspaceBytes(layout, shape, limits))
            .isEqualTo(sizes.workspaceBytes(layout, shape, limits));
        for (TensorUse use : TensorUse.values()) {
          assertThat(metal.tensorBytes(use, 258, 2048))
              .isEqualTo(sizes.tensorBytes(use, 258, 2048));
        }
        assertThat(metal.weightBytes(1, 2)).isEqualTo(sizes.weightBytes(1, 2));
      }
    }
  }
}
