package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import com.knuddels.jtokkit.Encodings;
import com.knuddels.jtokkit.api.Encoding;
import com.knuddels.jtokkit.api.GptBytePairEncodingParams;
import java.nio.charset.StandardCharsets;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

class TokenizerPropertyTest {
  private static final int FIRST_ADDED = 4063;

  private final Tokenizer tokenizer = Tokenizer.read(TokenizerFiles.NANO);
  private final int[] idByRank = new int[256 + 3807];
  private final Encoding jtokkit = jtokkit();

  @Provide
  Arbitrary<String> texts() {
    return Texts.wellFormed();
  }

  @Provide
  Arbitrary<String> anyUtf16() {
    return Texts.anyUtf16();
  }

  @Provide
  Arbitrary<String> textsWithAddedTokens() {
    return Texts.withAddedTokens();
  }

  @Property
  void decodesToTheNormalisedText(@ForAll("texts") String text) {
    assertThat(tokenizer.decode(tokenizer.encode(text))).isEqualTo(nfc(text));
  }

  @Property
  void acceptsAnyUtf16(@ForAll("anyUtf16") String text) {
    assertThat(nfc(tokenizer.decode(tokenizer.encode(text))))
        .isEqualTo(nfc(text.replaceAll("\\p{Cs}", "\ufffd")));
  }

  @Property
  void streamsWhatItDecodes(@ForAll("textsWithAddedTokens") String text) {
    int[] ids = tokenizer.encode(text);
    int[] visible = Arrays.stream(ids).filter(id -> !tokenizer.isSpecial(id)).toArray();
    StreamingDecoder decoder = new StreamingDecoder(tokenizer);
    StringBuilder streamed = new StringBuilder();
    for (int id : ids) {
      streamed.append(decoder.accept(id));
    }
    assertThat(streamed.append(decoder.finish())).hasToString(tokenizer.decode(visible));
  }

  @Property
  void givesNoAddedTokenForLiteralText(@ForAll("textsWithAddedTokens") String text) {
    int[] ids = tokenizer.encode(text, new int[] {0, text.length()});
    assertThat(Arrays.stream(ids).filter(id -> id >= FIRST_ADDED)).isEmpty();
    assertThat(tokenizer.decode(ids)).isEqualTo(nfc(text));
  }

  /** The added tokens are those that a plain search from the left finds outside the range. */
  @Property
  void findsExactlyTheAddedTokensOutsideARange(
      @ForAll("textsWithAddedTokens") String text,
      @ForAll @IntRange(max = 60) int a,
      @ForAll @IntRange(max = 60) int b) {
    int start = Math.min(Math.min(a, b), text.length());
    int end = Math.min(Math.max(a, b), text.length());
    var expected = new ArrayList<Integer>();
    for (int at = 0; at < text.length(); ) {
      int length = 1;
      for (int id = FIRST_ADDED; id < tokenizer.vocabularySize(); id++) {
        String token = new String(tokenizer.bytes(id), StandardCharsets.UTF_8);
        boolean overlaps = at < end && at + token.length() > start && start < end;
        if (text.startsWith(token, at) && !overlaps) {
          expected.add(id);
          length = token.length();
        }
      }
      at += length;
    }
    assertThat(
            Arrays.stream(tokenizer.encode(text, new int[] {start, end}))
                .filter(id -> id >= FIRST_ADDED)
                .boxed())
        .containsExactlyElementsOf(expected);
  }

  /**
   * JTokkit looks up merged bytes instead of pairs. That comes to the same in a vocabulary whose
   * merges are the ones that its own tokens go through, as lily-nano's are.
   */
  @Property(tries = 3000)
  void agreesWithJtokkit(@ForAll("texts") String text) {
    int[] expected =
        Arrays.stream(jtokkit.encodeOrdinary(nfc(text)).toArray())
            .map(rank -> idByRank[rank])
            .toArray();
    assertThat(tokenizer.encode(text, new int[] {0, text.length()})).containsExactly(expected);
  }

  private Encoding jtokkit() {
    ObjectNode root = TokenizerFiles.nano("tokenizer.json");
    JsonNode vocab = root.at("/model/vocab");
    Map<byte[], Integer> ranks = new HashMap<>();
    for (int b = 0; b < 256; b++) {
      idByRank[b] = vocab.path(Character.toString(ByteAlphabet.character(b))).intValue();
      ranks.put(new byte[] {(byte) b}, b);
    }
    int rank = 256;
    for (JsonNode merge : root.at("/model/merges")) {
      String token = merge.path(0).stringValue() + merge.path(1).stringValue();
      idByRank[rank] = vocab.path(token).intValue();
      ranks.put(ByteAlphabet.bytes(token), rank++);
    }
    Pattern pattern =
        Pattern.compile(
            PreTokenizer.PATTERN, Pattern.UNICODE_CASE | Pattern.UNICODE_CHARACTER_CLASS);
    return Encodings.newLazyEncodingRegistry()
        .registerGptBytePairEncoding(
            new GptBytePairEncodingParams("lily-nano", pattern, ranks, Map.of()))
        .getEncoding("lily-nano")
        .orElseThrow();
  }

  private static String nfc(String text) {
    return Normalizer.normalize(text, Normalizer.Form.NFC);
  }
}
