package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.checkpoint.CheckpointException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ModelLoaderTest {
  private static final Path NANO =
      Path.of(Objects.requireNonNull(System.getProperty("lily.nano.dir")));

  @TempDir Path directory;

  private static EngineOptions.Builder nano() {
    return EngineOptions.builder(NANO).backendOptions(new BackendOptions(1, "scalar"));
  }

  private void copyNano() throws IOException {
    try (Stream<Path> files = Files.list(NANO)) {
      for (Path file : files.toList()) {
        Files.copy(file, directory.resolve(file.getFileName()));
      }
    }
  }

  @AfterEach
  void nothingOfTheTestsCopyStaysMapped() throws IOException {
    Path maps = Path.of("/proc/self/maps");
    if (Files.exists(maps)) {
      assertThat(Files.readString(maps)).doesNotContain(directory.toString());
    }
  }

  @Test
  void describesWhatItLoaded() {
    try (LoadedModel loaded = ModelLoader.load(nano().build())) {
      ModelInfo info = loaded.info();
      assertThat(info.name()).isEqualTo("lily-nano-4bit");
      assertThat(info.parameters())
          .as("the model card says 18.4 million")
          .isBetween(18_300_000L, 18_500_000L);
      assertThat(info.contextLength()).isEqualTo(8192);
      assertThat(info.backend()).isEqualTo("cpu");
      assertThat(info.backendReason()).startsWith("cpu (");
      assertThat(info.notes()).isEmpty();
      assertThat(loaded.stopTokens()).containsExactly(4065, 4063);
      assertThat(loaded.generationDefaults().temperature()).isEqualTo(0.6);
      assertThat(loaded.generationDefaults().topK()).isEqualTo(20);
      MemoryPlan plan = loaded.plan();
      assertThat(plan.kvBytesPerToken())
          .as("3 layers, keys and values, 2 heads of 64, bf16")
          .isEqualTo(3 * 2 * 2 * 64 * 2);
      assertThat(plan.kvCacheBytes()).isEqualTo(8L * 8192 * plan.kvBytesPerToken());
      assertThat(plan.totalBytes()).isLessThan(plan.budgetBytes());
    }
  }

  @ParameterizedTest
  @CsvSource({
    "FP32, 3072",
    "BF16, 1536",
    "INT8, 816", // 2 scales of 4 bytes for each layer and head
  })
  void countsTheKvCacheByWhatItHolds(KeyValueType type, long bytesPerToken) {
    try (LoadedModel loaded = ModelLoader.load(nano().kvCache(type).build())) {
      assertThat(loaded.info().kvCache()).isEqualTo(type.word());
      assertThat(loaded.model().states().device().layout().keyValueType()).isEqualTo(type);
      assertThat(loaded.plan().kvBytesPerToken()).isEqualTo(bytesPerToken);
      assertThat(loaded.plan().kvCacheBytes()).isEqualTo(8L * 8192 * bytesPerToken);
      assertThat(StartupSummary.of(loaded.info(), loaded.plan()))
          .contains("  " + type.word() + ", " + StartupSummary.bytes(bytesPerToken) + " a token");
    }
  }

  @Test
  void sharesTheBudgetBetweenSessionsWhenItIsShort() {
    long budget = 64L << 20;
    try (LoadedModel loaded = ModelLoader.load(nano().memoryLimitBytes(budget).build())) {
      MemoryPlan plan = loaded.plan();
      assertThat(plan.totalBytes()).isLessThanOrEqualTo(budget);
      assertThat(plan.contextLength()).isBetween(512, 8192);
      assertThat(plan.kvCacheBytes())
          .as("at least one session of full length")
          .isGreaterThanOrEqualTo(plan.contextLength() * plan.kvBytesPerToken());
    }
  }

  @Test
  void refusesWhatDoesNotFitWithTheNumbersAndTheSettings() {
    assertThatThrownBy(
            () -> ModelLoader.load(nano().contextLength(8192).memoryLimitBytes(24L << 20).build()))
        .isInstanceOfSatisfying(
            ModelDoesNotFitException.class,
            e -> assertThat(e.plan().contextLength()).isEqualTo(8192))
        .hasMessageContaining("24.0 MiB may be used")
        .hasMessageContaining("8192 tokens")
        .hasMessageContaining("lily.context-length")
        .hasMessageContaining("lily.memory-limit");
  }

  @Test
  void unmapsAModelThatDoesNotFit() throws IOException {
    copyNano();
    EngineOptions options =
        EngineOptions.builder(directory).contextLength(8192).memoryLimitBytes(24L << 20).build();
    assertThatThrownBy(() -> ModelLoader.load(options))
        .isInstanceOf(ModelDoesNotFitException.class);
  }

  /** The plan allows what the system then does not give. */
  @Test
  void unmapsAModelWhoseStateCannotBeAllocated() throws IOException {
    copyNano();
    EngineOptions options =
        EngineOptions.builder(directory)
            .backend("cpu")
            .contextLength(64)
            .maxSessions(400_000)
            .cacheBytes(0L)
            .memoryLimitBytes(Long.MAX_VALUE)
            .build();
    assertThatThrownBy(() -> ModelLoader.load(options))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("does not fit");
  }

  @Test
  void refusesALongerContextThanTheModelWasTrainedFor() {
    assertThatThrownBy(() -> ModelLoader.load(nano().contextLength(8193).build()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("8193")
        .hasMessageContaining("8192");
  }

  @Test
  void refusesAnUnknownBackEndByName() {
    assertThatThrownBy(() -> ModelLoader.load(nano().backend("tpu").build()))
        .isInstanceOf(BackendException.class)
        .hasMessageContaining("'tpu'")
        .hasMessageContaining("cpu");
  }

  @Test
  void refusesAnotherModelTypeAndSaysWhatItRuns() throws IOException {
    copyNano();
    Path config = directory.resolve("config.json");
    Files.writeString(
        config, Files.readString(config).replace("\"qwen3_5_moe\"", "\"deepseek_v9\""));
    assertThatThrownBy(() -> ModelLoader.load(EngineOptions.builder(directory).build()))
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining("'deepseek_v9'")
        .hasMessageContaining("qwen3_5_moe");
  }

  @Test
  void reportsAForeignChatTemplateAndGoesOn() throws IOException {
    copyNano();
    Files.writeString(directory.resolve("chat_template.jinja"), "{{ messages }}");
    try (LoadedModel loaded =
        ModelLoader.load(
            EngineOptions.builder(directory)
                .backendOptions(new BackendOptions(1, "scalar"))
                .build())) {
      assertThat(loaded.info().notes())
          .singleElement()
          .asString()
          .contains("chat template differs");
    }
  }

  @Test
  void aMissingDirectoryIsNotFound() {
    assertThatThrownBy(
            () -> ModelLoader.load(EngineOptions.builder(directory.resolve("nowhere")).build()))
        .isInstanceOfSatisfying(
            CheckpointException.class,
            e -> assertThat(e.kind()).isEqualTo(CheckpointException.Kind.NOT_FOUND));
  }
}
