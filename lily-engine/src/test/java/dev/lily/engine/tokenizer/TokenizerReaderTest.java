package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.Consumer;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

class TokenizerReaderTest {
  @TempDir private Path directory;

  @Test
  void readsASoundFile() {
    Tokenizer tokenizer = read(TokenizerFiles.small("a b"));
    assertThat(tokenizer.encode("ab<think>c<|end|>")).containsExactly(256, 258, 'c', 257);
    assertThat(tokenizer.vocabularySize()).isEqualTo(259);
  }

  @Test
  void readsMergesAsStringsOrPairs() {
    ObjectNode pairs = TokenizerFiles.nano("tokenizer.json");
    ObjectNode strings = pairs.deepCopy();
    ArrayNode merges = ((ObjectNode) strings.get("model")).putArray("merges");
    for (JsonNode pair : pairs.at("/model/merges")) {
      merges.add(pair.path(0).stringValue() + " " + pair.path(1).stringValue());
    }
    JsonNode golden = TokenizerFiles.resource("/goldens/lily-nano/long.json");
    assertThat(read(strings).encode(golden.path("prompt").stringValue()))
        .containsExactly(TokenizerFiles.ids(golden.path("prompt_ids")));
  }

  @Test
  void takesAddedTokensFromBothFiles() {
    ObjectNode root = TokenizerFiles.nano("tokenizer.json");
    ArrayNode added = (ArrayNode) root.get("added_tokens");
    while (added.size() > 26) {
      added.remove(added.size() - 1);
    }
    assertThat(read(root).vocabularySize()).isEqualTo(4063 + 26);
    write("tokenizer_config.json", TokenizerFiles.nano("tokenizer_config.json").toString());
    Tokenizer both = Tokenizer.read(directory);
    assertThat(both.vocabularySize()).isEqualTo(4096);
    assertThat(both.encode("<tts_pad>")).containsExactly(4091);
    assertThat(both.isSpecial(4091)).isTrue();
    assertThat(both.encode("<think>")).containsExactly(4087);
    assertThat(both.isSpecial(4087)).isFalse();
  }

  @Test
  void letsTokenizerConfigDecideWhatIsSpecial() {
    TokenizerFiles.write(directory, TokenizerFiles.small());
    writeAddedTokensDecoder("257", TokenizerFiles.added(257, "<think>", true));
    assertThat(Tokenizer.read(directory).isSpecial(257)).isTrue();
  }

  @Test
  void acceptsAnAddedTokenThatTheVocabularyListsToo() {
    ObjectNode root = TokenizerFiles.small();
    vocab(root).put("<think>", 257);
    Tokenizer tokenizer = read(root);
    assertThat(tokenizer.encode("<think>")).containsExactly(257);
    assertThat(tokenizer.decode(new int[] {257})).isEqualTo("<think>");
  }

  @Test
  void leavesGapsBetweenIdsWithoutATokens() {
    ObjectNode root = TokenizerFiles.small();
    ((ArrayNode) root.get("added_tokens")).add(TokenizerFiles.added(300, "<far>", true));
    Tokenizer tokenizer = read(root);
    assertThat(tokenizer.vocabularySize()).isEqualTo(301);
    assertThatThrownBy(() -> tokenizer.bytes(299))
        .isInstanceOf(TokenizerException.class)
        .hasMessageContaining("299");
  }

  @Test
  void namesAMissingFile() {
    assertFails().hasMessageContaining("tokenizer.json does not exist");
  }

  @Test
  void refusesADirectoryInPlaceOfAFile() throws IOException {
    Files.createDirectory(directory.resolve("tokenizer.json"));
    assertFails().hasMessageContaining("Cannot read");
  }

  @Test
  void refusesAFileThatIsTooLarge() throws IOException {
    try (RandomAccessFile file =
        new RandomAccessFile(directory.resolve("tokenizer.json").toFile(), "rw")) {
      file.setLength((64L << 20) + 1);
    }
    assertFails().hasMessageContaining("67,108,864 bytes");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "{", "[1,2", "{} {}", "{\"a\":1,\"a\":2}", "nonsense", "\u0000"})
  void refusesWhatIsNotJson(String text) {
    write("tokenizer.json", text);
    assertFails().hasMessageContaining("JSON");
  }

  @ParameterizedTest
  @ValueSource(strings = {"[]", "null", "1", "\"text\""})
  void refusesOtherJsonThanAnObject(String text) {
    write("tokenizer.json", text);
    assertFails().hasMessageContaining("no JSON object");
  }

  @Test
  void refusesDeepNesting() {
    write("tokenizer.json", "{\"x\":" + "[".repeat(1_000_000));
    assertFails().hasMessageContaining("depth");
  }

  @Test
  void refusesTooManyValues() {
    write("tokenizer.json", "{\"x\":[" + "0,".repeat(4_000_000) + "0]}");
    assertFails().hasMessageContaining("oken count");
  }

  @Test
  void survivesACutAnywhere() throws IOException {
    byte[] whole = TokenizerFiles.small("a b").toString().getBytes(StandardCharsets.UTF_8);
    for (int length = whole.length - 1; length >= 0; length -= 11) {
      Files.write(directory.resolve("tokenizer.json"), Arrays.copyOf(whole, length));
      assertFails();
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      textBlock =
          """
          /normalizer; null; normalizer.type
          /normalizer; {"type":"NFKC"}; NFKC
          /pre_tokenizer; {"type":"ByteLevel"}; ByteLevel
          /pre_tokenizer/pretokenizers; []; 0 steps
          /pre_tokenizer/pretokenizers/0/type; "Digits"; Digits
          /pre_tokenizer/pretokenizers/0/pattern; {"String":" "}; pattern.Regex is absent
          /pre_tokenizer/pretokenizers/0/pattern/Regex; "[a-z]+"; [a-z]+
          /pre_tokenizer/pretokenizers/0/behavior; "Removed"; Removed
          /pre_tokenizer/pretokenizers/0/invert; true; invert
          /pre_tokenizer/pretokenizers/1/type; "Metaspace"; Metaspace
          /pre_tokenizer/pretokenizers/1/use_regex; true; use_regex
          /pre_tokenizer/pretokenizers/1/add_prefix_space; true; add_prefix_space
          /decoder; {"type":"WordPiece"}; WordPiece
          /decoder; null; decoder.type
          /post_processor; {"type":"TemplateProcessing"}; TemplateProcessing
          /model/type; "Unigram"; Unigram
          /model/dropout; 0.1; dropout
          /model/unk_token; "<unk>"; <unk>
          /model/byte_fallback; true; byte_fallback
          /model/ignore_merges; true; ignore_merges
          /model/continuing_subword_prefix; "##"; ##
          /model/end_of_word_suffix; "</w>"; </w>
          """)
  void refusesAnotherStepAndNamesIt(String pointer, String value, String named) {
    ObjectNode root = TokenizerFiles.small("a b");
    int slash = pointer.lastIndexOf('/');
    JsonNode parent = root.at(pointer.substring(0, slash));
    JsonNode replacement = TokenizerFiles.MAPPER.readTree(value);
    ((ObjectNode) parent).set(pointer.substring(slash + 1), replacement);
    TokenizerFiles.write(directory, root);
    assertFails().hasMessageContaining(named);
  }

  @ParameterizedTest
  @ValueSource(strings = {"add_bos_token", "add_eos_token", "add_prefix_space"})
  void refusesAConfigurationThatPutsSomethingIn(String name) {
    TokenizerFiles.write(directory, TokenizerFiles.small());
    write("tokenizer_config.json", "{\"" + name + "\":true}");
    assertFails().hasMessageContaining(name);
  }

  @Test
  void refusesAVocabularyWithoutAByte() {
    assertRefused(root -> vocab(root).remove("\u0120"), "byte 0x20");
  }

  @Test
  void refusesAnIdThatTwoTokensShare() {
    assertRefused(root -> vocab(root).put("xy", 97), "id 97");
  }

  @ParameterizedTest
  @ValueSource(strings = {"-1", "1048576", "4294967296", "1.5", "\"7\"", "null", "[]", "1e99"})
  void refusesIdsOutOfRange(String id) {
    JsonNode value = TokenizerFiles.MAPPER.readTree(id);
    assertRefused(root -> vocab(root).set("xy", value), "'xy'");
    assertRefused(
        root -> ((ObjectNode) root.at("/added_tokens/0")).set("id", value), "added_tokens");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "x y", "\u4e2d", "\u00ad"})
  void refusesTokensOutsideTheByteAlphabet(String token) {
    assertRefused(root -> vocab(root).put(token, 400), "byte-level alphabet", "400");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"\"ab\"", "\"a b c\"", "[\"a\"]", "[\"a\",\"b\",\"c\"]", "[1,2]", "{}", "null"})
  void refusesMergesThatAreNotOfTwoTokens(String merge) {
    JsonNode value = TokenizerFiles.MAPPER.readTree(merge);
    assertRefused(root -> merges(root).add(value), "Merge 1", "not two tokens");
  }

  @ParameterizedTest
  @CsvSource({"x y, xy", "zz a, zz", "a zz, zz", "' ', ''"})
  void refusesMergesOfUnknownTokens(String merge, String unknown) {
    assertRefused(root -> merges(root).add(merge), "no token '" + unknown + "'");
  }

  @Test
  void refusesAMergeThatIsListedTwice() {
    assertRefused(root -> merges(root).add("a b"), "Merges 0 and 1");
  }

  @Test
  void refusesMissingParts() {
    assertRefused(root -> ((ObjectNode) root.get("model")).remove("vocab"), "model.vocab");
    assertRefused(root -> ((ObjectNode) root.get("model")).remove("merges"), "model.merges");
    assertRefused(root -> root.remove("model"), "type is absent");
  }

  @ParameterizedTest
  @ValueSource(strings = {"lstrip", "rstrip", "single_word", "normalized"})
  void refusesAddedTokensThatAreFoundInAnotherWay(String flag) {
    assertRefused(
        root -> ((ObjectNode) root.at("/added_tokens/1")).put(flag, true), flag, "<think>");
  }

  @Test
  void refusesAddedTokensWithoutProperText() {
    String tooLong = "x".repeat(257);
    for (String content : new String[] {"", "\ud800", "x\udc00", tooLong}) {
      assertRefused(
          root -> ((ObjectNode) root.at("/added_tokens/1")).put("content", content), "token 258");
    }
    assertRefused(root -> ((ObjectNode) root.at("/added_tokens/1")).remove("content"), "token 258");
  }

  @Test
  void refusesAddedTokensThatContradictEachOther() {
    assertRefused(root -> added(root).add(TokenizerFiles.added(257, "<x>", true)), "257 twice");
    assertRefused(root -> added(root).add(TokenizerFiles.added(300, "<think>", true)), "two ids");
    assertRefused(root -> added(root).add(TokenizerFiles.added(97, "<x>", true)), "id 97");
    assertRefused(root -> added(root).add(TokenizerFiles.added(300, "a", true)), "two ids");
    assertRefused(root -> root.put("added_tokens", 5), "not an array");
  }

  @Test
  void refusesMoreAddedTokensThanAnyModelHas() {
    assertRefused(
        root -> {
          for (int id = 300; id < 300 + 4096; id++) {
            added(root).add(TokenizerFiles.added(id, "<" + id + ">", false));
          }
        },
        "4,096");
  }

  @Test
  void refusesAConfigurationThatContradictsTheTokenizer() {
    TokenizerFiles.write(directory, TokenizerFiles.small("a b"));
    writeAddedTokensDecoder("258", TokenizerFiles.added(258, "<other>", false));
    assertFails().hasMessageContaining("'<other>'").hasMessageContaining("'<think>'");
    writeAddedTokensDecoder("300", TokenizerFiles.added(300, "<think>", false));
    assertFails().hasMessageContaining("two ids");
    write("tokenizer_config.json", "{\"added_tokens_decoder\":[]}");
    assertFails().hasMessageContaining("not an object");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "x", "-1", "01", "1048576", "99999999999999999999", "1.0"})
  void refusesOtherKeysThanIdsInTheConfiguration(String key) {
    TokenizerFiles.write(directory, TokenizerFiles.small());
    writeAddedTokensDecoder(key, TokenizerFiles.added(0, "<x>", false));
    assertFails().hasMessageContaining("added_tokens_decoder has the id");
  }

  @Test
  void keepsMessagesShortAndOnOneLine() {
    ObjectNode root = TokenizerFiles.small();
    vocab(root).put("bad\r\n" + "x ".repeat(100_000), 256);
    TokenizerFiles.write(directory, root);
    assertFails()
        .satisfies(
            e -> {
              assertThat(e.getMessage()).doesNotContain("\n", "\r");
              assertThat(e.getMessage()).hasSizeLessThan(1000);
            });
  }

  private Tokenizer read(ObjectNode root) {
    return Tokenizer.read(TokenizerFiles.write(directory, root));
  }

  private void assertRefused(Consumer<ObjectNode> damage, String... named) {
    ObjectNode root = TokenizerFiles.small("a b");
    damage.accept(root);
    TokenizerFiles.write(directory, root);
    assertFails().hasMessageContainingAll(named);
  }

  private AbstractThrowableAssert<?, ? extends Throwable> assertFails() {
    return assertThatThrownBy(() -> Tokenizer.read(directory))
        .isExactlyInstanceOf(TokenizerException.class)
        .hasMessageContaining("tokenizer");
  }

  private void writeAddedTokensDecoder(String key, ObjectNode token) {
    ObjectNode config = TokenizerFiles.MAPPER.createObjectNode();
    config.putObject("added_tokens_decoder").set(key, token);
    write("tokenizer_config.json", config.toString());
  }

  private void write(String file, String text) {
    TokenizerFiles.write(directory, file, text);
  }

  private static ObjectNode vocab(ObjectNode root) {
    return (ObjectNode) root.at("/model/vocab");
  }

  private static ArrayNode merges(ObjectNode root) {
    return (ArrayNode) root.at("/model/merges");
  }

  private static ArrayNode added(ObjectNode root) {
    return (ArrayNode) root.get("added_tokens");
  }
}
