package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

class Utf8DecoderPropertyTest {
  /** Table 3-7 of the Unicode standard: lowest and highest value of each byte. */
  private static final int[][] WELL_FORMED = {
    {0x00, 0x7F},
    {0xC2, 0xDF, 0x80, 0xBF},
    {0xE0, 0xE0, 0xA0, 0xBF, 0x80, 0xBF},
    {0xE1, 0xEC, 0x80, 0xBF, 0x80, 0xBF},
    {0xED, 0xED, 0x80, 0x9F, 0x80, 0xBF},
    {0xEE, 0xEF, 0x80, 0xBF, 0x80, 0xBF},
    {0xF0, 0xF0, 0x90, 0xBF, 0x80, 0xBF, 0x80, 0xBF},
    {0xF1, 0xF3, 0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF},
    {0xF4, 0xF4, 0x80, 0x8F, 0x80, 0xBF, 0x80, 0xBF}
  };

  /** Bytes at the edges of UTF-8's ranges, which random ones seldom hit in a row. */
  @Provide
  Arbitrary<byte[]> bytes() {
    return Arbitraries.of(
            0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0,
            0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF)
        .map(Integer::byteValue)
        .array(Byte[].class)
        .ofMaxSize(24)
        .map(Utf8DecoderPropertyTest::unboxed);
  }

  @Provide
  Arbitrary<String> texts() {
    return Texts.wellFormed();
  }

  @Property(tries = 20_000)
  void replacesEachMaximalInvalidPartHoweverTheBytesAreCut(
      @ForAll("bytes") byte[] bytes, @ForAll @IntRange(min = 1, max = 5) int step) {
    assertThat(decode(bytes, step)).isEqualTo(byTable(bytes));
  }

  @Property(tries = 5000)
  void agreesWithTheJdkButForSurrogates(@ForAll("bytes") byte[] bytes) {
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = bytes[i] == (byte) 0xED ? (byte) 0xEC : bytes[i];
    }
    assertThat(decode(bytes, 1)).isEqualTo(new String(bytes, StandardCharsets.UTF_8));
  }

  @Example
  void givesThreeReplacementsForASurrogate() {
    byte[] surrogate = {(byte) 0xED, (byte) 0xA0, (byte) 0x80};
    assertThat(decode(surrogate, 1)).isEqualTo("\ufffd\ufffd\ufffd");
  }

  @Property
  void givesBackTextHoweverItIsCut(
      @ForAll("texts") String text, @ForAll @IntRange(min = 1, max = 5) int step) {
    assertThat(decode(text.getBytes(StandardCharsets.UTF_8), step)).isEqualTo(text);
  }

  @Property
  void neverGivesHalfACharacter(@ForAll("texts") String text) {
    Utf8Decoder decoder = new Utf8Decoder();
    for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
      String delta = decoder.decode(new byte[] {b});
      assertThat(delta.codePointCount(0, delta.length())).isLessThanOrEqualTo(1);
      assertThat(delta.codePoints()).noneMatch(c -> c >= 0xD800 && c <= 0xDFFF);
    }
    assertThat(decoder.finish()).isEmpty();
  }

  private static String decode(byte[] bytes, int step) {
    Utf8Decoder decoder = new Utf8Decoder();
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < bytes.length; i += step) {
      text.append(decoder.decode(Arrays.copyOfRange(bytes, i, Math.min(i + step, bytes.length))));
    }
    return text.append(decoder.finish()).toString();
  }

  /**
   * Walks the Unicode standard's table of well-formed sequences, always the longest start of one.
   */
  private static String byTable(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < bytes.length; ) {
      int longest = 0;
      boolean whole = false;
      for (int[] row : WELL_FORMED) {
        int n = 0;
        while (2 * n < row.length
            && i + n < bytes.length
            && (bytes[i + n] & 0xFF) >= row[2 * n]
            && (bytes[i + n] & 0xFF) <= row[2 * n + 1]) {
          n++;
        }
        if (n > longest) {
          longest = n;
          whole = 2 * n == row.length;
        }
      }
      text.append(whole ? new String(bytes, i, longest, StandardCharsets.UTF_8) : "\ufffd");
      i += Math.max(1, longest);
    }
    return text.toString();
  }

  private static byte[] unboxed(Byte[] boxed) {
    byte[] bytes = new byte[boxed.length];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = boxed[i];
    }
    return bytes;
  }
}
