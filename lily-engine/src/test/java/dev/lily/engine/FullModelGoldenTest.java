package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.lily.engine.RecordedContinuation.Comparison;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Qwen3.6-35B-A3B on the CPU against mlx-lm, with the model that LILY_MODEL_DIR names. */
class FullModelGoldenTest {
  @ParameterizedTest
  @ValueSource(strings = {"raw", "chat"})
  void continuesAsRecorded(String name) {
    String directory = System.getenv("LILY_MODEL_DIR");
    assumeTrue(
        directory != null && !directory.isBlank(),
        "LILY_MODEL_DIR is not set, so the goldens of the full model are not checked");
    RecordedContinuation golden =
        RecordedContinuation.read("/goldens/golden_35b_" + name + ".json");
    try (LoadedModel model =
        ModelLoader.load(
            EngineOptions.builder(Path.of(directory))
                .backend("cpu")
                .contextLength(golden.contextLength())
                .maxSessions(1)
                .build())) {
      Comparison comparison = golden.compare(model.model());
      System.out.println("35B golden '" + name + "' on cpu: " + comparison);
      assertThat(comparison.wrong()).isEmpty();
      assertThat(comparison.decodingEndsRightly()).isTrue();
    }
  }
}
