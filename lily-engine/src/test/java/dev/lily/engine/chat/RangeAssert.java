package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;

/** What tests ask of the literal ranges of a prompt. */
final class RangeAssert {
  private RangeAssert() {}

  /** Pairs, ascending, inside the text, none empty, no two touching. */
  static void assertWellFormed(RenderedPrompt prompt) {
    int[] ranges = prompt.literalRanges();
    assertThat(ranges.length).isEven();
    int free = -1;
    for (int i = 0; i < ranges.length; i += 2) {
      assertThat(ranges[i]).isGreaterThan(free);
      assertThat(ranges[i + 1]).isGreaterThan(ranges[i]);
      free = ranges[i + 1];
    }
    assertThat(free).isLessThanOrEqualTo(prompt.text().length());
  }

  /** The caller's pieces, in order. */
  static List<String> literals(RenderedPrompt prompt) {
    List<String> pieces = new ArrayList<>();
    int[] ranges = prompt.literalRanges();
    for (int i = 0; i < ranges.length; i += 2) {
      pieces.add(prompt.text().substring(ranges[i], ranges[i + 1]));
    }
    return pieces;
  }

  /** The template's text, with {@code ¤} where the caller's pieces were. */
  static String skeleton(RenderedPrompt prompt) {
    StringBuilder skeleton = new StringBuilder();
    int[] ranges = prompt.literalRanges();
    int free = 0;
    for (int i = 0; i < ranges.length; i += 2) {
      skeleton.append(prompt.text(), free, ranges[i]).append('¤');
      free = ranges[i + 1];
    }
    return skeleton.append(prompt.text(), free, prompt.text().length()).toString();
  }
}
