package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.LoadedModel;
import dev.lily.engine.ModelLoader;
import dev.lily.engine.RecordedContinuation;
import dev.lily.engine.RecordedContinuation.Comparison;
import dev.lily.metal.device.MetalGpu;
import dev.lily.metal.device.MetalGpuExtension;
import java.nio.file.Path;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Qwen3.6-35B-A3B on a real GPU against mlx-lm, with the model that LILY_MODEL_DIR names. */
@ExtendWith(MetalGpuExtension.class)
class FullModelGoldenTest {
  @ParameterizedTest
  @ValueSource(strings = {"raw", "chat", "long"})
  void continuesAsRecorded(String name, MetalGpu gpu) {
    String directory = System.getenv("LILY_MODEL_DIR");
    assumeTrue(
        directory != null && !directory.isBlank(),
        "LILY_MODEL_DIR is not set, so the goldens of the full model are not checked");
    assumeTrue(
        gpu.kind() == MetalGpu.Kind.DEVICE, "the double would take hours for the full model");
    RecordedContinuation golden =
        RecordedContinuation.read("/goldens/golden_35b_" + name + ".json");
    try (LoadedModel model =
        ModelLoader.load(
            EngineOptions.builder(Path.of(directory))
                .backend(MetalBackendProvider.ID)
                .contextLength(golden.contextLength())
                .maxSessions(1)
                .build())) {
      Comparison comparison = golden.compare(model.model());
      System.out.println("35B golden '" + name + "' on metal: " + comparison);
      assertThat(comparison.wrong()).isEmpty();
      assertThat(comparison.decodingEndsRightly()).isTrue();
    }
  }
}
