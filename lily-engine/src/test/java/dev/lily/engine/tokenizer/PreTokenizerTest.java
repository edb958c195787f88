package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PreTokenizerTest {
  static List<String> pieces(String text) {
    List<String> pieces = new ArrayList<>();
    for (int at = 0; at < text.length(); ) {
      int end = PreTokenizer.end(text, at);
      pieces.add(text.substring(at, end));
      at = end;
    }
    return pieces;
  }

  @Test
  void givesTheSpaceToTheWordThatFollows() {
    assertThat(pieces("Hello big  world")).containsExactly("Hello", " big", " ", " world");
  }

  @Test
  void makesEveryDigitAPieceOfItsOwn() {
    assertThat(pieces("in 2026x \u0661\u00bd"))
        .containsExactly("in", " ", "2", "0", "2", "6", "x", " ", "\u0661", "\u00bd");
  }

  @Test
  void keepsMarksWithTheirLetters() {
    assertThat(pieces("n\u0303o \u0301x")).containsExactly("n\u0303o", " \u0301x");
  }

  @Test
  void splitsOffContractionsInEitherCase() {
    assertThat(pieces("I'm they'VE it'\u017f dog'sx o'clock"))
        .containsExactly(
            "I", "'m", " they", "'VE", " it", "'\u017f", " dog", "'s", "x", " o", "'clock");
  }

  @Test
  void joinsOnePunctuationMarkToLettersAndLineBreaksToPunctuation() {
    assertThat(pieces("(x) => {\n\n  y")).containsExactly("(x", ")", " =>", " {\n\n", " ", " y");
  }

  @Test
  void endsSpaceAtItsLastLineBreak() {
    assertThat(pieces("a \n\t\r\n  b \n")).containsExactly("a", " \n\t\r\n", " ", " b", " \n");
  }

  @Test
  void neverJoinsALineBreakToALetter() {
    assertThat(pieces("\nx\r\ny\tz")).containsExactly("\n", "x", "\r\n", "y", "\tz");
  }

  @Test
  void leavesSpaceAtTheEndWhole() {
    assertThat(pieces("a   ")).containsExactly("a", "   ");
  }

  @ParameterizedTest
  @ValueSource(
      ints = {
        0x9, 0xB, 0xC, 0x20, 0x85, 0xA0, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F,
        0x3000
      })
  void takesUnicodeWhiteSpaceForSpace(int space) {
    String s = Character.toString(space);
    assertThat(pieces(s + s + "1")).containsExactly(s, s, "1");
    assertThat(pieces("!" + s + s)).containsExactly("!", s + s);
  }

  @ParameterizedTest
  @ValueSource(ints = {0x1C, 0x1F, 0x200B, 0x180E, 0xFEFF})
  void takesOtherInvisibleCharactersForPunctuation(int other) {
    String s = Character.toString(other);
    assertThat(pieces(" " + s + s + "1")).containsExactly(" " + s + s, "1");
  }
}
