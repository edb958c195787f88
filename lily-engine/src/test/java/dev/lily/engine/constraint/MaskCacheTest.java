package dev.lily.engine.constraint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MaskCacheTest {
  private static final TokenVocabulary VOCABULARY = Texts.bytes();
  private static final long MASK_BYTES = 5 * Long.BYTES;

  private static Matcher after(Grammar grammar, String text) {
    Matcher matcher = new Matcher(grammar, VOCABULARY);
    text.chars().forEach(matcher::advance);
    return matcher;
  }

  @Test
  void sharesMasksBetweenAnswersAtTheSamePlace() {
    Grammar grammar = Texts.schema("{'type':'array','items':{'type':'integer'}}");
    MaskCache cache = new MaskCache(VOCABULARY, 100 * MASK_BYTES);
    cache.mask(after(grammar, "[1,"));
    cache.mask(after(grammar, "[7, 8,"));
    assertThat(cache.misses()).isEqualTo(1);
    assertThat(cache.hits()).isEqualTo(1);
  }

  @Test
  void tellsGrammarsAndDepthsApart() {
    Grammar grammar = Texts.schema("{'type':'array','items':{'$ref':'#'}}");
    MaskCache cache = new MaskCache(VOCABULARY, 100 * MASK_BYTES);
    cache.mask(after(grammar, "["));
    cache.mask(after(grammar, "[["));
    cache.mask(after(Texts.schema("{'type':'array','items':{'$ref':'#'}}"), "["));
    assertThat(cache.misses()).isEqualTo(3);
  }

  @Test
  void doesNotTellCountsApartThatNoTokenCanReach() {
    Grammar grammar = Texts.schema("{'type':'string','minLength':500,'maxLength':1000}");
    MaskCache cache = new MaskCache(VOCABULARY, 100 * MASK_BYTES);
    cache.mask(after(grammar, "\"abc"));
    cache.mask(after(grammar, "\"abcdefgh"));
    assertThat(cache.hits()).isEqualTo(1);
    cache.mask(after(grammar, "\"" + "x".repeat(499)));
    cache.mask(after(grammar, "\"" + "x".repeat(500)));
    assertThat(cache.misses()).isEqualTo(3);
  }

  @Test
  void givesRightMasksWhileItMakesRoom() {
    Grammar grammar = Texts.schema("true");
    MaskCache small = new MaskCache(VOCABULARY, 3 * MASK_BYTES);
    MaskCache large = new MaskCache(VOCABULARY, 10_000 * MASK_BYTES);
    Random random = new Random(5);
    for (int answer = 0; answer < 20; answer++) {
      Matcher matcher = new Matcher(grammar, VOCABULARY);
      for (int i = 0; i < 60 && !matcher.isFinished(); i++) {
        long[] mask = small.mask(matcher).clone();
        assertThat(mask).isEqualTo(large.mask(matcher));
        int token = random.nextInt(256);
        while (!Texts.isAllowed(mask, token)) {
          token = (token + 1) % 256;
        }
        matcher.advance(token);
      }
    }
    assertThat(small.size()).isEqualTo(3);
    assertThat(small.misses()).isGreaterThan(large.misses());
  }

  @Test
  void refusesAVocabularyThatCannotWriteEveryByte() {
    byte[][] texts = new byte[300][];
    for (int b = 0; b < 256; b++) {
      texts[b] = new byte[] {(byte) (b == 'q' ? 'r' : b)};
    }
    assertThatThrownBy(() -> new TokenVocabulary(texts, new int[] {299}, List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("0x71");
  }

  @Test
  void bytesThatNoTextHasAreNotTakenForMarkers() {
    Grammar grammar =
        new AnswerShape(
                new AnswerShape.Markup("\u00F8", "\u00F9", "\u00FA"),
                true,
                new OutputConstraint.JsonObject(),
                List.of(),
                AnswerShape.Calls.ALLOWED,
                true)
            .compile();
    byte[][] texts = new byte[300][];
    for (int b = 0; b < 256; b++) {
      texts[b] = new byte[] {(byte) b};
    }
    TokenVocabulary vocabulary =
        new TokenVocabulary(
            texts,
            new int[] {299},
            List.of(TokenVocabulary.NO_MARKER, TokenVocabulary.NO_MARKER, 270));
    Matcher matcher = new Matcher(grammar, vocabulary);
    assertThat(matcher.allows(0xFA)).isFalse();
    assertThat(matcher.allows(270)).isTrue();
  }

  @Test
  void aTokenThatTheMaskForbidsChangesNothing() {
    Matcher matcher = after(Texts.schema("{'type':'integer'}"), "-");
    assertThatThrownBy(() -> matcher.advance('x')).isInstanceOf(IllegalArgumentException.class);
    matcher.advance('4');
    assertThat(matcher.isComplete()).isTrue();
  }
}
