package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;

class StreamingDecoderTest {
  private final Tokenizer tokenizer = Tokenizer.read(TokenizerFiles.NANO);

  record FieldCase(String name, List<byte[]> tokens, String expected) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<FieldCase> fieldCases() {
    JsonNode cases = TokenizerFiles.resource("/field-cases/utf8-token-bytes.json").path("cases");
    return StreamSupport.stream(cases.spliterator(), false)
        .map(
            c ->
                new FieldCase(
                    c.path("id").stringValue(),
                    StreamSupport.stream(c.path("token_bytes").spliterator(), false)
                        .map(hex -> HexFormat.of().parseHex(hex.stringValue()))
                        .toList(),
                    c.path("expected_text").stringValue()));
  }

  @Test
  void knowsEveryCase() {
    assertThat(fieldCases().map(FieldCase::name)).hasSize(14).doesNotHaveDuplicates();
  }

  @ParameterizedTest
  @MethodSource("fieldCases")
  void putsCharactersTogetherThatSpanTokens(FieldCase fieldCase) {
    byte[][] vocabulary = fieldCase.tokens().toArray(byte[][]::new);
    StreamingDecoder decoder =
        new StreamingDecoder(
            new Tokenizer(
                new Vocabulary(vocabulary, new BitSet()),
                new AddedTokens(List.of()),
                new MergeTable(new int[0], new int[0], new int[0]),
                new int[256]));
    StringBuilder text = new StringBuilder();
    for (int id = 0; id < vocabulary.length; id++) {
      String delta = decoder.accept(id);
      assertThat(new String(delta.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8))
          .isEqualTo(delta);
      text.append(delta);
    }
    assertThat(text.append(decoder.finish())).hasToString(fieldCase.expected());
  }

  @ParameterizedTest
  @MethodSource("fieldCases")
  void putsCharactersTogetherThatAreCutAtEveryByte(FieldCase fieldCase) {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    StringBuilder text = new StringBuilder();
    for (byte[] token : fieldCase.tokens()) {
      for (byte b : token) {
        text.append(decoder.accept(byteToken(b)));
      }
    }
    assertThat(text.append(decoder.finish())).hasToString(fieldCase.expected());
  }

  @Test
  void givesAllThatIsCompleteAtOnce() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    assertThat(decoder.accept(byteToken(0xF0))).isEmpty();
    assertThat(decoder.accept(byteToken(0x9F))).isEmpty();
    assertThat(decoder.accept(byteToken(0x98))).isEmpty();
    assertThat(decoder.accept(byteToken(0x80))).isEqualTo("\ud83d\ude00");
    assertThat(decoder.accept(byteToken('!'))).isEqualTo("!");
    assertThat(decoder.finish()).isEmpty();
  }

  @Test
  void replacesBrokenBytesAsSoonAsTheyAreKnownToBeBroken() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    assertThat(decoder.accept(byteToken(0xE2))).isEmpty();
    assertThat(decoder.accept(byteToken(0x82))).isEmpty();
    assertThat(decoder.accept(byteToken('b'))).isEqualTo("\ufffdb");
    // After 0xED only a surrogate could follow, and UTF-8 has none.
    assertThat(decoder.accept(byteToken(0xED))).isEmpty();
    assertThat(decoder.accept(byteToken(0xA0))).isEqualTo("\ufffd\ufffd");
  }

  @Test
  void dropsSpecialTokensAndKeepsOtherAddedOnes() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    StringBuilder text = new StringBuilder();
    for (int id : tokenizer.encode("<think>Hm</think>Hi<|im_end|><|endoftext|>")) {
      text.append(decoder.accept(id));
    }
    assertThat(text).hasToString("<think>Hm</think>Hi");
  }

  @Test
  void keepsWaitingBytesOverASpecialToken() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    decoder.accept(byteToken(0xC3));
    assertThat(decoder.accept(tokenizer.addedToken("<|im_end|>").orElseThrow())).isEmpty();
    assertThat(decoder.accept(byteToken(0xA9))).isEqualTo("\u00e9");
  }

  @Test
  void startsAfreshAfterTheEnd() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    decoder.accept(byteToken(0xC3));
    assertThat(decoder.finish()).isEqualTo("\ufffd");
    assertThat(decoder.finish()).isEmpty();
    assertThat(decoder.accept(byteToken(0xA9))).isEqualTo("\ufffd");
  }

  @Test
  void keepsALeadingSpaceAndDoesNotRenormalise() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    StringBuilder text = new StringBuilder();
    for (byte b : " e\u0301".getBytes(StandardCharsets.UTF_8)) {
      text.append(decoder.accept(byteToken(b)));
    }
    assertThat(text).hasToString(" e\u0301");
  }

  @Test
  void refusesIdsThatDoNotExist() {
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    assertThatThrownBy(() -> decoder.accept(tokenizer.vocabularySize()))
        .isInstanceOf(TokenizerException.class)
        .hasMessageContaining("4096");
  }

  private int byteToken(int b) {
    for (int id = 0; id < 256; id++) {
      byte[] bytes = tokenizer.bytes(id);
      if (bytes.length == 1 && (bytes[0] & 0xFF) == (b & 0xFF)) {
        return id;
      }
    }
    throw new AssertionError(b);
  }
}
