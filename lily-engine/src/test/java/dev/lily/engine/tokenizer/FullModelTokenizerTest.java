package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** With the tokenizer of Qwen3.6-35B-A3B in the directory that LILY_MODEL_DIR names. */
class FullModelTokenizerTest {
  private Tokenizer tokenizer;

  @BeforeEach
  void readTheTokenizer() {
    String directory = System.getenv("LILY_MODEL_DIR");
    assumeTrue(
        directory != null && !directory.isBlank(),
        "LILY_MODEL_DIR is not set, so the goldens of the full model's tokenizer are not checked");
    tokenizer = Tokenizer.read(Path.of(directory));
  }

  @Test
  void givesTheIdsOfTheRawPrompt() {
    JsonNode golden = TokenizerFiles.resource("/goldens/golden_35b_raw.json");
    assertGolden(golden, golden.path("prompt").stringValue());
  }

  @Test
  void givesTheIdsOfTheLongPrompt() {
    JsonNode golden = TokenizerFiles.resource("/goldens/golden_35b_long.json");
    assertGolden(golden, golden.path("prompt").stringValue());
  }

  @Test
  void givesTheIdsOfTheChatPrompt() {
    JsonNode golden = TokenizerFiles.resource("/goldens/golden_35b_chat.json");
    assertGolden(
        golden,
        "<|im_start|>user\n"
            + golden.path("prompt").stringValue()
            + "<|im_end|>\n<|im_start|>assistant\n<think>\n");
  }

  @Test
  void knowsAllTokensOfBothFiles() {
    assertThat(tokenizer.vocabularySize()).isEqualTo(248_077);
    assertThat(tokenizer.addedToken("<|endoftext|>")).hasValue(248_044);
    assertThat(tokenizer.addedToken("<|audio_pad|>")).hasValue(248_076);
    assertThat(tokenizer.isSpecial(248_046)).isTrue();
    assertThat(tokenizer.isSpecial(248_068)).isFalse();
  }

  private void assertGolden(JsonNode golden, String text) {
    int[] ids = TokenizerFiles.ids(golden.path("prompt_token_ids"));
    assertThat(tokenizer.encode(text)).containsExactly(ids);
    assertThat(tokenizer.decode(ids)).isEqualTo(text);
  }
}
