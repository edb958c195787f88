package dev.lily.engine.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;

import java.text.Normalizer;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;

class NfcPropertyTest {
  private static final Integer[] MARKS =
      IntStream.rangeClosed(0, Character.MAX_CODE_POINT)
          .filter(NfcPropertyTest::isMark)
          .boxed()
          .toArray(Integer[]::new);

  @Provide
  Arbitrary<String> texts() {
    return Texts.wellFormed();
  }

  @Provide
  Arbitrary<String> runsOfMarks() {
    Arbitrary<String> mark = Arbitraries.of(MARKS).map(Character::toString);
    return Arbitraries.frequencyOf(Tuple.of(300, mark), Tuple.of(1, Texts.wellFormed()))
        .list()
        .ofMaxSize(300)
        .map(list -> String.join("", list));
  }

  @Property
  void equalsTheJdkOnText(@ForAll("texts") String text) {
    assertThat(Nfc.normalize(text)).isEqualTo(jdk(text));
  }

  @Property(tries = 300)
  void equalsTheJdkOnLongRunsOfMarks(@ForAll("runsOfMarks") String text) {
    assertThat(Nfc.normalize(text)).isEqualTo(jdk(text));
  }

  /** What {@link Nfc} relies on when it looks for runs: only marks are ever moved. */
  @Example
  void onlyMarksHaveACombiningClass() {
    for (int c = 0; c <= Character.MAX_CODE_POINT; c++) {
      if (!isMark(c) && Character.getType(c) != Character.SURROGATE) {
        String first = Normalizer.normalize(Character.toString(c), Normalizer.Form.NFD);
        assertThat(Normalizer.isNormalized("\u0345" + first, Normalizer.Form.NFD))
            .as("U+%04X", c)
            .isTrue();
      }
    }
  }

  private static boolean isMark(int c) {
    int type = Character.getType(c);
    return type == Character.NON_SPACING_MARK
        || type == Character.COMBINING_SPACING_MARK
        || type == Character.ENCLOSING_MARK;
  }

  private static String jdk(String text) {
    return Normalizer.normalize(text, Normalizer.Form.NFC);
  }
}
