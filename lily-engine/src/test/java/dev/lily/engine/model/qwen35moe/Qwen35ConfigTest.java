package dev.lily.engine.model.qwen35moe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.checkpoint.CheckpointException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

class Qwen35ConfigTest {
  private static final Path FILE = Path.of("config.json");

  @Test
  void readsEveryDimensionOfLilyNano() throws IOException {
    Qwen35Config config =
        Qwen35Config.read(
            JsonMapper.shared()
                .readTree(Files.readString(ModelHarness.nano().resolve("config.json"))),
            FILE);
    assertThat(config.hiddenSize()).isEqualTo(256);
    assertThat(config.numHiddenLayers()).isEqualTo(12);
    assertThat(config.numAttentionLayers()).isEqualTo(3);
    assertThat(config.numDeltaLayers()).isEqualTo(9);
    assertThat(config.isFullAttention().subList(0, 4)).containsExactly(false, false, false, true);
    assertThat(config.rotaryDim()).isEqualTo(16);
    assertThat(config.ropeTheta()).isEqualTo(1e7);
    assertThat(config.convDim()).isEqualTo(2 * 4 * 64 + 8 * 64);
    assertThat(config.valueDim()).isEqualTo(512);
    assertThat(config.numExperts()).isEqualTo(16);
    assertThat(config.numExpertsPerToken()).isEqualTo(4);
    assertThat(config.vocabSize()).isEqualTo(4096);
    assertThat(config.eosTokens()).as("the outer list wins").isEqualTo(List.of(4065, 4063));
  }

  @Test
  void derivesTheShapesOfThe35B() {
    ObjectNode config = TinyCheckpoint.config(false);
    ObjectNode text = (ObjectNode) config.get("text_config");
    text.put("hidden_size", 2048).put("num_hidden_layers", 40).put("vocab_size", 248320);
    text.put("num_attention_heads", 16).put("num_key_value_heads", 2).put("head_dim", 256);
    text.put("linear_num_key_heads", 16).put("linear_num_value_heads", 32);
    text.put("linear_key_head_dim", 128).put("linear_value_head_dim", 128);
    text.put("num_experts", 256).put("num_experts_per_tok", 8);
    Qwen35Config read = Qwen35Config.read(config, FILE);
    assertThat(read.convDim()).isEqualTo(8192);
    assertThat(read.valueDim()).isEqualTo(4096);
    assertThat(read.attentionDim()).isEqualTo(4096);
    assertThat(read.keyValueDim()).isEqualTo(512);
    assertThat(read.rotaryDim()).isEqualTo(64);
    assertThat(read.numAttentionLayers()).isEqualTo(10);
    assertThat(Qwen35Moe.layout(read, 32, 1, 1, 1, 248077).slotElements() * 4)
        .as("recurrent and convolution state of one sequence")
        .isEqualTo(62_914_560L + 30 * 3 * 8192 * 4);
  }

  @ParameterizedTest
  @CsvSource({
    "hidden_size,0,between 1 and",
    "hidden_size,-4,between 1 and",
    "hidden_size,2.5,whole number",
    "hidden_size,99999999999,whole number",
    "num_hidden_layers,100000,between 1 and 1024",
    "num_attention_heads,3,multiple of num_key_value_heads",
    "linear_num_value_heads,3,multiple of linear_num_key_heads",
    "num_experts_per_tok,9,only 8 experts",
    "rms_norm_eps,0,positive",
    "rms_norm_eps,-1,positive",
    "tie_word_embeddings,true,only false",
    "attn_output_gate,false,only true",
    "norm_topk_prob,false,only true",
    "attention_bias,true,only false",
    "full_attention_interval,0,between 1 and"
  })
  void refusesAFieldByName(String field, String value, String rule) {
    ObjectNode config = TinyCheckpoint.config(false);
    ((ObjectNode) config.get("text_config")).set(field, JsonMapper.shared().readTree(value));
    assertThatThrownBy(() -> Qwen35Config.read(config, FILE))
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining(field)
        .hasMessageContaining(rule);
  }

  @Test
  void refusesAMissingField() {
    ObjectNode config = TinyCheckpoint.config(false);
    ((ObjectNode) config.get("text_config")).remove("head_dim");
    assertThatThrownBy(() -> Qwen35Config.read(config, FILE))
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining("head_dim is missing");
  }

  @Test
  void refusesAnotherModelByName() {
    ObjectNode config = TinyCheckpoint.config(false).put("model_type", "llama");
    assertThatThrownBy(() -> Qwen35Config.read(config, FILE))
        .hasMessageContaining("model_type is 'llama'")
        .hasMessageContaining("qwen3_5_moe");
  }

  @Test
  void refusesLayerTypesThatContradictTheInterval() {
    ObjectNode config = TinyCheckpoint.config(false);
    ((ObjectNode) config.get("text_config"))
        .putArray("layer_types")
        .add("full_attention")
        .add("linear_attention")
        .add("linear_attention")
        .add("linear_attention");
    assertThatThrownBy(() -> Qwen35Config.read(config, FILE))
        .hasMessageContaining("layer_types[0]")
        .hasMessageContaining("full_attention_interval 4");
  }

  @Test
  void refusesScaledRotaryEmbeddings() {
    ObjectNode config = TinyCheckpoint.config(false);
    ((ObjectNode) config.get("text_config").get("rope_parameters")).put("rope_type", "yarn");
    assertThatThrownBy(() -> Qwen35Config.read(config, FILE)).hasMessageContaining("'yarn'");
  }

  @Test
  void refusesAnEndTokenOutsideTheVocabulary() {
    ObjectNode config = TinyCheckpoint.config(false).put("eos_token_id", 96);
    assertThatThrownBy(() -> Qwen35Config.read(config, FILE)).hasMessageContaining("eos_token_id");
  }
}
