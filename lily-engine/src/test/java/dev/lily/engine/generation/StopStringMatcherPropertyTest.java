package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.CharRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.constraints.StringLength;

class StopStringMatcherPropertyTest {

  @Property(tries = 2000)
  void agreesWithLookingAtEveryPrefix(
      @ForAll @Size(max = 12)
          List<@StringLength(max = 6) @CharRange(from = 'a', to = 'b') String> pieces,
      @ForAll @Size(min = 1, max = 4)
          List<@StringLength(min = 1, max = 5) @CharRange(from = 'a', to = 'b') String> stops) {
    StopStringMatcher matcher = new StopStringMatcher(stops);
    StringBuilder sent = new StringBuilder();
    pieces.forEach(piece -> sent.append(matcher.accept(piece)));
    boolean matched = matcher.matched();
    sent.append(matcher.release());

    String expected = String.join("", pieces);
    int cut = firstMatch(expected, stops);
    assertThat(matched).isEqualTo(cut >= 0);
    assertThat(sent.toString()).isEqualTo(cut < 0 ? expected : expected.substring(0, cut));
  }

  private static int firstMatch(String text, List<String> stops) {
    for (int end = 1; end <= text.length(); end++) {
      String prefix = text.substring(0, end);
      int longest =
          stops.stream().filter(prefix::endsWith).mapToInt(String::length).max().orElse(0);
      if (longest > 0) {
        return end - longest;
      }
    }
    return -1;
  }
}
