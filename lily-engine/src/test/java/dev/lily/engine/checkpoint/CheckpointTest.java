package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointTest {
  private static final Path NANO = Path.of(System.getProperty("lily.nano.dir"));

  @TempDir Path directory;

  @Test
  void opensLilyNano() {
    try (Checkpoint nano = Checkpoint.open(NANO)) {
      assertThat(nano.directory()).isEqualTo(NANO);
      assertThat(nano.notes()).isEmpty();
      assertThat(nano.config().get("model_type").asString()).isEqualTo("qwen3_5_moe");
      assertThat(nano.generationConfig().get("top_k").asInt()).isEqualTo(20);
      assertThat(List.copyOf(nano.tensorNames())).hasSize(532).isSorted();
      assertThat(
              nano.tensorNames().stream()
                  .collect(
                      Collectors.groupingBy(
                          name -> nano.tensor(name).dtype(), Collectors.counting())))
          .isEqualTo(Map.of("U32", 155L, "BF16", 368L, "F32", 9L));
      assertThat(nano.mappings())
          .singleElement()
          .satisfies(
              mapping -> {
                assertThat(mapping.byteSize())
                    .isEqualTo(Files.size(NANO.resolve("model.safetensors")));
                assertThat(mapping.isReadOnly()).isTrue();
              });
    }
  }

  @Test
  void knowsTheShapesAndSettingsOfLilyNano() {
    try (Checkpoint nano = Checkpoint.open(NANO)) {
      Quantization quantization = nano.quantization().orElseThrow();
      String gate = "language_model.model.layers.0.mlp.gate";

      assertThat(quantization.of(gate)).contains(new Quantization.Setting(64, 8));
      assertThat(quantization.of("language_model.lm_head"))
          .contains(new Quantization.Setting(64, 4));
      TensorEntry head = nano.tensor("language_model.lm_head.weight");
      assertThat(head.shape())
          .containsExactly(
              nano.config().at("/text_config/vocab_size").asLong(),
              nano.config().at("/text_config/hidden_size").asLong() / 8);
      assertThat(head.data().byteSize()).isEqualTo(head.shape().get(0) * head.shape().get(1) * 4);
      assertThat(head.file()).isEqualTo(NANO.resolve("model.safetensors"));
    }
  }

  @Test
  void followsSymbolicLinksAsInTheHuggingFaceCache() throws IOException {
    Path written = BadCheckpoints.variant("good").writeBelow(directory);
    Path blobs = Files.createDirectory(directory.resolve("blobs"));
    Path snapshot = Files.createDirectories(directory.resolve("snapshots/0123abcd"));
    int number = 0;
    for (String name : BadCheckpoints.variant("good").files().keySet()) {
      Path blob = Files.move(written.resolve(name), blobs.resolve("blob" + number++));
      Files.createSymbolicLink(snapshot.resolve(name), snapshot.relativize(blob));
    }

    try (Checkpoint checkpoint = Checkpoint.open(snapshot)) {
      assertThat(CheckpointValues.floats(checkpoint.tensor("model.embed_tokens.weight")))
          .isEqualTo(BadCheckpoints.embeddings());
    }
  }

  @Test
  void saysThatALinkLeadsNowhere() throws IOException {
    config("{}");
    Files.createSymbolicLink(directory.resolve("model.safetensors"), Path.of("absent"));

    assertThat(refusal().kind()).isEqualTo(Kind.NOT_FOUND);
    assertThat(refusal()).hasMessageContaining("link points to a file that does not exist");
  }

  @Test
  void hasAnEmptyGenerationConfigAndNoQuantizationWhereThereIsNone() throws IOException {
    config("{}");
    dense().write(directory.resolve("model.safetensors"));

    try (Checkpoint checkpoint = Checkpoint.open(directory)) {
      assertThat(checkpoint.generationConfig().isObject()).isTrue();
      assertThat(checkpoint.generationConfig()).isEmpty();
      assertThat(checkpoint.quantization()).isEmpty();
      assertThat(checkpoint.tensorNames()).containsExactly("norm.weight");
    }
  }

  @Test
  void refusesADamagedGenerationConfigInsteadOfUsingDefaults() throws IOException {
    config("{}");
    dense().write(directory.resolve("model.safetensors"));
    Files.writeString(directory.resolve("generation_config.json"), "{\"top_k\": 20, \"top_k\": 5}");

    assertThat(refusal())
        .hasMessageContaining("generation_config.json")
        .hasMessageContaining("Duplicate")
        .hasMessageContaining("top_k");
  }

  @Test
  void namesATensorThatIsMissing() throws IOException {
    config("{}");
    dense().write(directory.resolve("model.safetensors"));
    try (Checkpoint checkpoint = Checkpoint.open(directory)) {
      CheckpointException e =
          catchThrowableOfType(
              CheckpointException.class, () -> checkpoint.tensor("lm_head.weight"));

      assertThat(e).hasMessageContaining("'lm_head.weight' is missing from the 1 tensors");
    }
  }

  @Test
  void closesTwiceAndFailsCleanlyOnLateAccess() throws IOException {
    config("{}");
    dense().write(directory.resolve("model.safetensors"));
    Checkpoint checkpoint = Checkpoint.open(directory);
    MemorySegment data = checkpoint.tensor("norm.weight").data();
    checkpoint.close();
    checkpoint.close();

    assertThatIllegalStateException().isThrownBy(() -> data.get(ValueLayout.JAVA_BYTE, 0));
  }

  @Test
  void saysHowToFetchAModelThatIsNotThere() {
    CheckpointException e =
        catchThrowableOfType(
            CheckpointException.class, () -> Checkpoint.open(directory.resolve("nowhere")));

    assertThat(e.kind()).isEqualTo(Kind.NOT_FOUND);
    assertThat(e).hasMessageContaining("nowhere").hasMessageContaining("hf download");
  }

  @Test
  void asksForTheDirectoryWhenGivenAFile() throws IOException {
    Path file = Files.createFile(directory.resolve("model.gguf"));
    CheckpointException e =
        catchThrowableOfType(CheckpointException.class, () -> Checkpoint.open(file));

    assertThat(e).hasMessageContaining("This is a file");
  }

  @Test
  void asksForASnapshotWhenGivenARepositoryOfTheCache() throws IOException {
    Files.createDirectory(directory.resolve("snapshots"));

    assertThat(refusal()).hasMessageContaining("give a directory inside its 'snapshots'");
  }

  @Test
  void saysWhichWeightFilesItLooksFor() throws IOException {
    config("{}");

    assertThat(refusal().kind()).isEqualTo(Kind.NOT_FOUND);
    assertThat(refusal())
        .hasMessageContaining("model.safetensors.index.json")
        .hasMessageContaining("model.safetensors")
        .hasMessageContaining("numbered shards");
  }

  @ParameterizedTest
  @ValueSource(strings = {"[]", "null", "3", "\"text\"", "", "{} {}", "{\"a\": NaN}", "{\"a\":1,}"})
  void refusesAConfigThatIsNotOneJsonObject(String content) throws IOException {
    config(content);

    assertThat(refusal().kind()).isEqualTo(Kind.CORRUPT);
    assertThat(refusal()).hasMessageContaining("config.json");
  }

  @Test
  void refusesAConfigOfAbsurdDepth() throws IOException {
    config("{\"a\":" + "[".repeat(100_000));

    assertThat(refusal()).hasMessageContaining("config.json").hasMessageContaining("depth");
  }

  @Test
  void refusesAConfigOfAbsurdSize() throws IOException {
    config("{}" + " ".repeat(5 << 20));

    assertThat(refusal()).hasMessageContaining("more than 4194304 bytes");
  }

  @Test
  void recognisesALfsPointerInPlaceOfTheConfig() throws IOException {
    config("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3000\n");

    assertThat(refusal()).hasMessageContaining("Git LFS pointer");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "../weights.safetensors",
        "sub/weights.safetensors",
        "sub\\weights.safetensors",
        "/weights.safetensors",
        "C:weights.safetensors",
        "..safetensors",
        "a..safetensors",
        ".weights.safetensors",
        "weights.bin",
        "weights.safetensors\u0000",
        ""
      })
  void refusesAnIndexThatLeadsOutOfTheDirectory(String file) throws IOException {
    config("{}");
    SafetensorsWriter.writeIndex(directory, Map.of(file, dense()));

    assertThat(refusal().kind()).isEqualTo(Kind.CORRUPT);
    assertThat(refusal())
        .hasMessageContaining("norm.weight")
        .hasMessageContaining("plain file name");
  }

  @Test
  void refusesAnIndexWithoutAWeightMap() throws IOException {
    config("{}");
    Files.writeString(directory.resolve(BadCheckpoints.INDEX), "{\"metadata\": {}}");

    assertThat(refusal()).hasMessageContaining("weight_map");
  }

  @Test
  void refusesATensorThatIsInTwoShards() throws IOException {
    config("{}");
    dense().write(directory.resolve("a.safetensors"));
    dense().addF32("other.weight", new float[1], 1).write(directory.resolve("b.safetensors"));
    index(
        Map.of(
            "a.safetensors",
            dense(),
            "b.safetensors",
            new SafetensorsWriter().addF32("other.weight", new float[1], 1)));

    assertThat(refusal())
        .hasMessageContaining("'norm.weight' is in two shards")
        .hasMessageContaining("a.safetensors")
        .hasMessageContaining("b.safetensors");
  }

  @Test
  void refusesATensorInAnotherShardThanTheIndexSays() throws IOException {
    config("{}");
    SafetensorsWriter other = new SafetensorsWriter().addF32("other.weight", new float[1], 1);
    dense().write(directory.resolve("a.safetensors"));
    other.write(directory.resolve("b.safetensors"));
    index(Map.of("a.safetensors", other, "b.safetensors", dense()));

    assertThat(refusal())
        .hasMessageContaining("2 of 2 tensors")
        .hasMessageContaining("'norm.weight', 'other.weight'");
  }

  @Test
  void listsAllMissingShardsAtOnce() throws IOException {
    config("{}");
    Map<String, SafetensorsWriter> shards = new LinkedHashMap<>();
    for (int i = 1; i <= 4; i++) {
      shards.put(
          "model-0000%d-of-00004.safetensors".formatted(i),
          new SafetensorsWriter().addF32("t" + i, new float[1], 1));
    }
    index(shards);
    shards.forEach(
        (name, shard) -> {
          if (name.contains("00002-of") || name.contains("00003-of")) {
            shard.write(directory.resolve(name));
          }
        });

    assertThat(refusal())
        .hasMessageContaining("2 of 4 shards are missing")
        .hasMessageContaining("model-00001-of-00004.safetensors")
        .hasMessageContaining("model-00004-of-00004.safetensors");
  }

  @Test
  void refusesNumberedShardsWithAGapWhenThereIsNoIndex() throws IOException {
    config("{}");
    dense().write(directory.resolve("model-00001-of-00003.safetensors"));
    Files.createFile(directory.resolve("._model-00002-of-00003.safetensors"));

    assertThat(refusal())
        .hasMessageContaining("2 of 3 shards are missing")
        .hasMessageContaining("model-00002-of-00003.safetensors");
  }

  @Test
  void refusesNumberedShardsOfTwoDownloadsWhenThereIsNoIndex() throws IOException {
    config("{}");
    dense().write(directory.resolve("model-00001-of-00001.safetensors"));
    dense().write(directory.resolve("model-00001-of-00002.safetensors"));

    assertThat(refusal()).hasMessageContaining("which belong together");
  }

  @Test
  void doesNotOpenAPipe() throws IOException, InterruptedException {
    config("{}");
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/mkfifo")));
    new ProcessBuilder("/usr/bin/mkfifo", directory.resolve("model.safetensors").toString())
        .start()
        .waitFor();

    assertThat(refusal()).hasMessageContaining("not a regular file");
  }

  private void config(String content) throws IOException {
    Files.writeString(directory.resolve("config.json"), content);
  }

  private void index(Map<String, SafetensorsWriter> shards) {
    SafetensorsWriter.writeIndex(directory, shards);
  }

  private static SafetensorsWriter dense() {
    return new SafetensorsWriter().addBf16("norm.weight", new float[] {1, 2, 3, 4}, 4);
  }

  private CheckpointException refusal() {
    CheckpointException e =
        catchThrowableOfType(CheckpointException.class, () -> Checkpoint.open(directory));
    assertThat(e).isNotNull();
    return e;
  }
}
