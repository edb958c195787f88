package dev.lily.engine.model.qwen35moe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.checkpoint.CheckpointException;
import dev.lily.engine.checkpoint.SafetensorsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WeightReaderTest {
  private static final PassLimits LIMITS = new PassLimits(4, 1, 1, 8);

  @TempDir Path directory;

  private SafetensorsWriter huggingFace() {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (Map.Entry<String, long[]> tensor : TinyCheckpoint.shapes().entrySet()) {
      int size = 1;
      for (long dimension : tensor.getValue()) {
        size *= (int) dimension;
      }
      writer.addBf16(
          tensor.getKey(), TinyCheckpoint.generate(tensor.getKey(), size), tensor.getValue());
    }
    return writer;
  }

  private void write(SafetensorsWriter writer) throws IOException {
    Files.writeString(directory.resolve("config.json"), TinyCheckpoint.config(false).toString());
    writer.write(directory.resolve("model.safetensors"));
  }

  private long parameters() {
    try (ModelHarness tiny = ModelHarness.open(directory, "scalar", KeyValueType.FP32, 1, LIMITS)) {
      return tiny.model.parameters();
    }
  }

  @Test
  void countsEveryWeightOnceInBothLayouts() throws IOException {
    write(huggingFace());
    long expected =
        TinyCheckpoint.shapes().values().stream()
            .mapToLong(
                shape -> {
                  long size = 1;
                  for (long dimension : shape) {
                    size *= dimension;
                  }
                  return size;
                })
            .sum();
    assertThat(parameters()).isEqualTo(expected);
    TinyCheckpoint.writeMlx(directory, true);
    assertThat(parameters()).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(strings = {"model.visual.blocks.0.weight", "vision_tower.x", "mtp.fc.weight"})
  void skipsVisionAndDraftTensorsByName(String name) throws IOException {
    write(huggingFace().addF32(name, new float[3], 3));
    assertThat(parameters()).isPositive();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "model.language_model.layers.3.self_attn.q_proj.weight",
        "model.language_model.layers.1.mlp.experts.gate_up_proj",
        "lm_head.weight"
      })
  void refusesAMissingTensorByName(String name) throws IOException {
    write(huggingFace().without(name));
    assertThatThrownBy(this::parameters)
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining(name.replace("experts.gate_up_proj", ""));
  }

  @Test
  void refusesATensorThatNothingReads() throws IOException {
    write(
        huggingFace()
            .addF32("model.language_model.layers.0.self_attn.rotary.inv_freq", new float[4], 4));
    assertThatThrownBy(this::parameters)
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining("inv_freq")
        .hasMessageContaining("not part of");
  }

  @Test
  void refusesAnotherShapeWithBothShapes() throws IOException {
    String name = "model.language_model.layers.0.mlp.gate.weight";
    write(huggingFace().without(name).addBf16(name, new float[4 * 64], 4, 64));
    assertThatThrownBy(this::parameters)
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining(name)
        .hasMessageContaining("[4, 64]")
        .hasMessageContaining("[8, 64]")
        .hasMessageContaining("config.json");
  }

  @Test
  void refusesATransposedConvolution() throws IOException {
    String name = "model.language_model.layers.1.linear_attn.conv1d.weight";
    write(huggingFace().without(name).addBf16(name, new float[128 * 4], 128, 4, 1));
    assertThatThrownBy(this::parameters)
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining(name)
        .hasMessageContaining("[128, 1, 4]");
  }

  @Test
  void refusesAnUnsupportedElementType() throws IOException {
    String name = "model.language_model.layers.0.linear_attn.A_log";
    write(huggingFace().without(name).add(name, "F16", new byte[8], 4));
    assertThatThrownBy(this::parameters)
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining(name)
        .hasMessageContaining("F16");
  }

  @Test
  void refusesGainsThatLackTheirOne() throws IOException {
    String name = "model.language_model.norm.weight";
    float[] gain = new float[64];
    Arrays.fill(gain, -1.5f);
    write(huggingFace().without(name).addBf16(name, gain, 64));
    assertThatThrownBy(this::parameters)
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining(name)
        .hasMessageContaining("mean gain");
  }
}
