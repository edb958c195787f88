package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

class TokenizerTest {
  private static final Tokenizer TOKENIZER = Tokenizer.read(TokenizerFiles.NANO);
  private static final int FIRST_ADDED = 4063;

  record Golden(String name, String text, int[] ids) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Golden> goldens() {
    JsonNode prompts = TokenizerFiles.resource("/goldens/lily-nano/prompts.json").path("prompts");
    JsonNode nll = TokenizerFiles.resource("/goldens/lily-nano/nll.json").path("texts");
    JsonNode longPrompt = TokenizerFiles.resource("/goldens/lily-nano/long.json");
    return Stream.of(
            elements(prompts)
                .map(p -> golden(p.path("name"), p.path("prompt"), p.path("prompt_ids"))),
            elements(nll).map(t -> golden(t.path("text"), t.path("text"), t.path("ids"))),
            Stream.of(
                new Golden(
                    "long",
                    longPrompt.path("prompt").stringValue(),
                    TokenizerFiles.ids(longPrompt.path("prompt_ids")))))
        .flatMap(stream -> stream);
  }

  static Stream<JsonNode> evaluationCases() {
    return elements(TokenizerFiles.resource("/goldens/lily-nano/eval.json").path("cases"));
  }

  static Stream<JsonNode> referenceCases() {
    return elements(TokenizerFiles.resource("/goldens/tokenizer_reference.json").path("cases"));
  }

  @ParameterizedTest
  @MethodSource("goldens")
  void givesTheIdsOfTheGoldens(Golden golden) {
    assertThat(TOKENIZER.encode(golden.text())).containsExactly(golden.ids());
    assertThat(TOKENIZER.decode(golden.ids())).isEqualTo(golden.text());
  }

  @Test
  void givesBackTheIdsOfEveryEvaluationCase() {
    assertThat(evaluationCases()).hasSize(200);
    assertThat(evaluationCases())
        .allSatisfy(
            c -> {
              int[] ids = TokenizerFiles.ids(c.path("prompt_ids"));
              assertThat(TOKENIZER.encode(TOKENIZER.decode(ids))).containsExactly(ids);
            });
  }

  @Test
  void decodesWhatTheReferenceModelWrote() {
    JsonNode prompts = TokenizerFiles.resource("/goldens/lily-nano/prompts.json").path("prompts");
    assertThat(elements(prompts))
        .hasSize(12)
        .allSatisfy(
            p -> {
              int[] ids = TokenizerFiles.ids(p.path("greedy_ids"));
              StreamingDecoder decoder = new StreamingDecoder(TOKENIZER);
              StringBuilder text = new StringBuilder();
              for (int i = 0; i < p.path("end_at").intValue(); i++) {
                text.append(decoder.accept(ids[i]));
              }
              assertThat(text.append(decoder.finish()))
                  .hasToString(p.path("greedy_text").stringValue());
            });
  }

  @Test
  void givesTheIdsOfAnIndependentImplementation() {
    assertThat(referenceCases()).hasSizeGreaterThan(200);
    assertThat(referenceCases())
        .allSatisfy(
            c -> {
              String text = c.path("text").stringValue();
              int[] ids = TokenizerFiles.ids(c.path("ids"));
              assertThat(TOKENIZER.encode(text)).containsExactly(ids);
              int[] literalIds =
                  c.has("literal_ids") ? TokenizerFiles.ids(c.path("literal_ids")) : ids;
              assertThat(TOKENIZER.encode(text, new int[] {0, text.length()}))
                  .containsExactly(literalIds);
            });
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "e\u0301 \u00e9",
        "\u1112\u1161\u11ab \ud55c",
        "a\u0323\u0307 a\u0307\u0323",
        "\u212b \u00c5",
        "o\u0308<|im_end|>u\u0308 \u00f6<|im_end|>\u00fc"
      })
  void givesTheSameIdsForComposedAndDecomposedText(String pair) {
    String[] forms = pair.split(" ");
    assertThat(TOKENIZER.encode(forms[0])).containsExactly(TOKENIZER.encode(forms[1]));
  }

  @Test
  void matchesAddedTokensBeforeNormalising() {
    // In form C the last character of the token and the mark would become U+226F.
    int[] ids = TOKENIZER.encode("<think>\u0338");
    assertThat(ids[0]).isEqualTo(added("<think>"));
    assertThat(TOKENIZER.decode(ids)).isEqualTo("<think>\u0338");
    assertThat(ids).hasSize(1 + TOKENIZER.encode("\u0338").length);
  }

  @Test
  void encodesLoneSurrogatesAsReplacementCharacters() {
    assertThat(TOKENIZER.encode("a\ud800b\udc00"))
        .containsExactly(TOKENIZER.encode("a\ufffdb\ufffd"));
    assertThat(TOKENIZER.encode("\udc00<think>\ud800"))
        .containsExactly(TOKENIZER.encode("\ufffd<think>\ufffd"));
  }

  @Test
  void encodesNothingAsNothing() {
    assertThat(TOKENIZER.encode("")).isEmpty();
    assertThat(TOKENIZER.decode(new int[0])).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "a",
        "ab",
        " ",
        "\n",
        "!",
        "7",
        "\u4e2d",
        "\u0301",
        "\ud83d\ude00",
        "<",
        "\ud800",
        "\u0000"
      })
  void encodesAMillionCharsOfOneClass(String unit) {
    // Enough units that whole tokens fill them: tokens of these runs have up to eight chars.
    String eight = unit.repeat(8);
    int n = 1_000_000 / eight.length();
    int[] one = TOKENIZER.encode(eight);
    int[] ids = TOKENIZER.encode(eight.repeat(n));
    assertThat(ids).hasSize(n * one.length);
    for (int i = 0; i < ids.length; i += one.length) {
      if (!Arrays.equals(ids, i, i + one.length, one, 0, one.length)) {
        assertThat(Arrays.copyOfRange(ids, i, i + one.length)).as("at " + i).containsExactly(one);
      }
    }
  }

  @Test
  void encodesAMillionCharsOfPrefixesOfAddedTokens() {
    String text = "<|im_end|".repeat(111_111) + ">";
    int[] ids = TOKENIZER.encode(text);
    assertThat(ids[ids.length - 1]).isEqualTo(added("<|im_end|>"));
    assertThat(Arrays.stream(ids).filter(id -> id >= FIRST_ADDED)).hasSize(1);
    assertThat(TOKENIZER.decode(ids)).isEqualTo(text);
  }

  @Test
  void refusesTextBeyondTheLimit() {
    String text = "a".repeat((1 << 28) + 1);
    assertThatThrownBy(() -> TOKENIZER.encode(text))
        .isInstanceOf(TokenizerException.class)
        .hasMessageContaining("268,435,457");
  }

  @Test
  void knowsTheBytesOfEveryToken() {
    assertThat(TOKENIZER.vocabularySize()).isEqualTo(4096);
    for (int id = 0; id < FIRST_ADDED; id++) {
      assertThat(TOKENIZER.bytes(id)).isNotEmpty();
      assertThat(TOKENIZER.isSpecial(id)).isFalse();
    }
    JsonNode added = TokenizerFiles.nano("tokenizer.json").path("added_tokens");
    assertThat(elements(added))
        .hasSize(33)
        .allSatisfy(
            token -> {
              int id = token.path("id").intValue();
              String content = token.path("content").stringValue();
              assertThat(TOKENIZER.bytes(id)).isEqualTo(content.getBytes(StandardCharsets.UTF_8));
              assertThat(TOKENIZER.isSpecial(id)).isEqualTo(token.path("special").booleanValue());
              assertThat(TOKENIZER.addedToken(content)).hasValue(id);
              assertThat(TOKENIZER.encode(content)).containsExactly(id);
            });
  }

  @Test
  void findsNoAddedTokenUnderAnotherName() {
    assertThat(TOKENIZER.addedToken("<think")).isEmpty();
    assertThat(TOKENIZER.addedToken("")).isEmpty();
    assertThat(TOKENIZER.addedToken("a")).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 4096, 248_319, Integer.MAX_VALUE, Integer.MIN_VALUE})
  void refusesIdsThatDoNotExist(int id) {
    assertThatThrownBy(() -> TOKENIZER.bytes(id))
        .isInstanceOf(TokenizerException.class)
        .hasMessageContaining(Integer.toString(id))
        .hasMessageContaining("4095");
    assertThatThrownBy(() -> TOKENIZER.isSpecial(id)).isInstanceOf(TokenizerException.class);
    assertThatThrownBy(() -> TOKENIZER.decode(new int[] {id}))
        .isInstanceOf(TokenizerException.class);
  }

  @Test
  void decodesSpecialTokensToTheirText() {
    assertThat(TOKENIZER.decode(new int[] {added("<|im_end|>"), added("</think>")}))
        .isEqualTo("<|im_end|></think>");
  }

  @Test
  void replacesInvalidBytesWhenDecoding() {
    int[] ids = TOKENIZER.encode("\u00e9".repeat(3) + "\ud83d\ude00");
    int[] cut = Arrays.copyOf(ids, ids.length - 1);
    assertThat(TOKENIZER.decode(cut)).isEqualTo("\u00e9\u00e9\u00e9\ufffd");
  }

  private static int added(String content) {
    return TOKENIZER.addedToken(content).orElseThrow();
  }

  private static Golden golden(JsonNode name, JsonNode text, JsonNode ids) {
    return new Golden(name.stringValue(), text.stringValue(), TokenizerFiles.ids(ids));
  }

  private static Stream<JsonNode> elements(JsonNode array) {
    return StreamSupport.stream(array.spliterator(), false);
  }
}
