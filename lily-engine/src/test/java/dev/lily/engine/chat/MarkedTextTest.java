package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class MarkedTextTest {

  @Test
  void joinsLiteralsThatTouchAndSkipsEmptyOnes() {
    MarkedText text =
        new MarkedText.Builder()
            .literal("")
            .literal("ab")
            .append(MarkedText.literal("c"))
            .template("")
            .literal("d")
            .template("-")
            .literal("")
            .template("-")
            .literal("e")
            .build();

    assertThat(text.text()).isEqualTo("abcd--e");
    assertThat(text.literalRanges()).containsExactly(0, 4, 6, 7);
  }

  @Test
  void holdsMoreRangesThanItsFirstRoom() {
    MarkedText.Builder builder = new MarkedText.Builder();
    for (int i = 0; i < 100; i++) {
      builder.template("-").literal("x");
    }
    int[] ranges = builder.build().literalRanges();

    assertThat(ranges).hasSize(200);
    assertThat(ranges[198]).isEqualTo(199);
    assertThat(ranges[199]).isEqualTo(200);
  }

  @Test
  void cutsRangesWithTheText() {
    MarkedText text = new MarkedText.Builder().literal("abc").template("--").literal("def").build();

    assertThat(text.substring(1, 7).text()).isEqualTo("bc--de");
    assertThat(text.substring(1, 7).literalRanges()).containsExactly(0, 2, 4, 6);
    assertThat(text.substring(3, 5).literalRanges()).isEmpty();
    assertThat(text.substring(0, 8)).isSameAs(text);
  }

  @Test
  void trimsLiteralAndTemplateTextAlike() {
    MarkedText text =
        new MarkedText.Builder().literal("\u3000 ").template(" a ").literal("\u0085b\t").build();

    assertThat(text.trim().text()).isEqualTo("a \u0085b");
    assertThat(text.trim().literalRanges()).containsExactly(2, 4);
  }

  @Test
  void trimsExactlyWhatPythonTrims() {
    StringBuilder trimmed = new StringBuilder();
    for (int c = 0; c <= Character.MAX_VALUE; c++) {
      if (MarkedText.literal(String.valueOf((char) c)).trim().isEmpty()) {
        trimmed.append((char) c);
      }
    }

    assertThat(trimmed)
        .hasToString(
            "\t\n\u000b\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680"
                + "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
                + "\u2028\u2029\u202f\u205f\u3000");
    assertThat(MarkedText.literal(trimmed.toString()).trim()).isSameAs(MarkedText.EMPTY);
  }

  @Test
  void stripsOnlyNewlinesAtTheFront() {
    MarkedText text = MarkedText.literal("\n\n \nx\n");

    assertThat(text.withoutLeadingNewlines().text()).isEqualTo(" \nx\n");
    assertThat(MarkedText.literal("\n").withoutLeadingNewlines().literalRanges()).isEmpty();
  }
}
