package dev.lily.engine.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.lily.engine.checkpoint.CheckpointException.Kind;
import dev.lily.engine.checkpoint.Quantization.Setting;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.json.JsonMapper;

class QuantizationReaderTest {
  private static final Path FILE = Path.of("config.json");

  private final List<String> notes = new ArrayList<>();

  @Test
  void isEmptyWithoutABlock() {
    assertThat(read("{}")).isEmpty();
    assertThat(read("{'quantization': null, 'quantization_config': null}")).isEmpty();
  }

  @Test
  void readsDefaultsAndOverrides() {
    Quantization quantization =
        read("""
            {'quantization': {'group_size': 64, 'bits': 4, 'mode': 'affine',
              'a.gate': {'group_size': 32, 'bits': 8}, 'a.norm': false, 'a.up': true,
              'a.down': {'bits': 8}}}""")
            .orElseThrow();

    assertThat(quantization.of("a.gate")).contains(new Setting(32, 8));
    assertThat(quantization.of("a.norm")).isEmpty();
    assertThat(quantization.of("a.up")).contains(new Setting(64, 4));
    assertThat(quantization.of("a.down")).contains(new Setting(64, 8));
    assertThat(quantization.of("anything.else")).contains(new Setting(64, 4));
    assertThat(notes).isEmpty();
  }

  @Test
  void fallsBackToTheKeyOfTransformers() {
    assertThat(read("{'quantization_config': {'group_size': 64, 'bits': 8}}").orElseThrow().bits())
        .isEqualTo(8);
  }

  @Test
  void usesTheFirstOfTwoBlocksThatDifferAndSaysSo() {
    Quantization quantization =
        read("""
            {'quantization': {'group_size': 64, 'bits': 4},
             'quantization_config': {'quant_method': 'fp8'}}""")
            .orElseThrow();

    assertThat(quantization.bits()).isEqualTo(4);
    assertThat(notes).singleElement().asString().contains("differ");
  }

  @Test
  void notesAScalarItDoesNotKnow() {
    read("{'quantization': {'group_size': 64, 'bits': 4, 'version': 2}}");

    assertThat(notes).singleElement().asString().contains("'version'");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{'group_size': 64, 'bits': 4, 'mode': 'mxfp4'}          | UNSUPPORTED | mode '\"mxfp4\"'",
        "{'group_size': 64, 'bits': 4, 'mode': null}             | UNSUPPORTED | mode 'null'",
        "{'group_size': 64, 'bits': 3}                           | UNSUPPORTED | 3 bits",
        "{'group_size': 16, 'bits': 4}                           | UNSUPPORTED | Group size 16",
        "{'group_size': 64, 'bits': 4, 'x': {'bits': 6}}         | UNSUPPORTED | 'x'' asks for 6 bits",
        "{'group_size': 64, 'bits': 4, 'x': {'mode': 'nvfp4'}}   | UNSUPPORTED | 'x'' has mode",
        "{'quant_method': 'fp8', 'weight_block_size': [128,128]} | UNSUPPORTED | quant_method 'fp8'",
        "{'quant_method': 'awq', 'bits': 4, 'group_size': 128}   | UNSUPPORTED | quant_method 'awq'",
        "{'group_size': 64}                                      | CORRUPT     | integer bits but has none",
        "{'bits': 4}                                             | CORRUPT     | integer group_size but has none",
        "{'group_size': 64.0, 'bits': 4}                         | CORRUPT     | has '64.0'",
        "{'group_size': 99999999999, 'bits': 4}                  | CORRUPT     | has '99999999999'",
        "{'group_size': '64', 'bits': 4}                         | CORRUPT     | integer group_size",
        "[4, 64]                                                 | CORRUPT     | must be an object",
        "true                                                    | CORRUPT     | must be an object",
      })
  void refusesSettingsItCannotRun(String block, Kind kind, String message) {
    CheckpointException e =
        catchThrowableOfType(
            CheckpointException.class, () -> read("{'quantization': " + block + "}"));

    assertThat(e).isNotNull();
    assertThat(e.kind()).isEqualTo(kind);
    assertThat(e).hasMessageStartingWith("config.json: ").hasMessageContaining(message);
  }

  private Optional<Quantization> read(String config) {
    return QuantizationReader.read(
        FILE, new JsonMapper().readTree(config.replace('\'', '"')), notes);
  }
}
