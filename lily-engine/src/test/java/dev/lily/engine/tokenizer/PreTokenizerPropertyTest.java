package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

class PreTokenizerPropertyTest {
  private static final Pattern PATTERN =
      Pattern.compile(PreTokenizer.PATTERN, Pattern.UNICODE_CASE | Pattern.UNICODE_CHARACTER_CLASS);

  @Provide
  Arbitrary<String> texts() {
    return Texts.wellFormed();
  }

  @Property(tries = 5000)
  void cutsAsThePatternDoes(@ForAll("texts") String text) {
    assertThat(PreTokenizerTest.pieces(text)).containsExactlyElementsOf(byPattern(text));
  }

  @Example
  void classesEveryCharacterAsThePatternDoes() {
    for (int c = 0; c <= Character.MAX_CODE_POINT; c++) {
      if (Character.getType(c) == Character.SURROGATE) {
        continue;
      }
      String letter = Character.toString(c);
      String text = " " + letter + letter + "a'" + letter;
      List<String> pieces = PreTokenizerTest.pieces(text);
      if (!pieces.equals(byPattern(text))) {
        assertThat(pieces).as("U+%04X", c).containsExactlyElementsOf(byPattern(text));
      }
    }
  }

  private static List<String> byPattern(String text) {
    List<String> pieces = new ArrayList<>();
    Matcher matcher = PATTERN.matcher(text);
    while (matcher.find()) {
      pieces.add(matcher.group());
    }
    return pieces;
  }
}
