package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectMapper;

class StopStringMatcherTest {

  record Case(String id, List<String> pieces, List<String> stop, String text, boolean stopped) {
    @Override
    public String toString() {
      return id;
    }
  }

  static Stream<Case> fieldCases() throws IOException {
    try (InputStream file =
        StopStringMatcherTest.class.getResourceAsStream("/field-cases/stop-strings.json")) {
      return new ObjectMapper()
          .readTree(file)
          .get("cases")
          .valueStream()
          .map(
              c ->
                  new Case(
                      c.get("id").stringValue(),
                      strings(c.get("pieces")),
                      strings(c.get("stop")),
                      c.get("expected_text").stringValue(),
                      c.get("stopped").booleanValue()));
    }
  }

  private static List<String> strings(JsonNode array) {
    return array.valueStream().map(JsonNode::stringValue).toList();
  }

  @Test
  void knowsEveryCase() throws IOException {
    assertThat(fieldCases().map(Case::id)).hasSize(10).doesNotHaveDuplicates();
  }

  @ParameterizedTest
  @MethodSource("fieldCases")
  void endsRightBeforeTheFirstMatch(Case c) {
    assertSays(c, c.pieces);
  }

  @ParameterizedTest
  @MethodSource("fieldCases")
  void saysTheSameForEveryCut(Case c) {
    String whole = String.join("", c.pieces);
    assertSays(c, List.of(whole));
    assertSays(c, whole.codePoints().mapToObj(Character::toString).toList());
    for (int first = 0; first <= whole.length(); first++) {
      for (int second = first; second <= whole.length(); second++) {
        assertSays(
            c,
            List.of(
                whole.substring(0, first),
                whole.substring(first, second),
                whole.substring(second)));
      }
    }
  }

  /** Also that only what may become a match is held, whatever is sent. */
  private static void assertSays(Case c, List<String> pieces) {
    StopStringMatcher matcher = new StopStringMatcher(c.stop);
    StringBuilder sent = new StringBuilder();
    StringBuilder seen = new StringBuilder();
    for (String piece : pieces) {
      seen.append(piece);
      sent.append(matcher.accept(piece));
      if (!matcher.matched()) {
        String held = seen.substring(sent.length());
        assertThat(seen.toString()).startsWith(sent.toString());
        assertThat(held.isEmpty() || c.stop.stream().anyMatch(s -> s.startsWith(held))).isTrue();
      }
    }
    sent.append(matcher.release());
    assertThat(sent.toString()).as("pieces %s", pieces).isEqualTo(c.text);
    assertThat(matcher.matched()).isEqualTo(c.stopped);
  }

  @Test
  void saysNothingAfterAMatch() {
    StopStringMatcher matcher = new StopStringMatcher(List.of("b"));
    assertThat(matcher.accept("abc")).isEqualTo("a");
    assertThat(matcher.accept("more")).isEmpty();
    assertThat(matcher.release()).isEmpty();
  }

  @Test
  void takesTheMatchThatIsCompleteFirstThoughALongerOneBeganEarlier() {
    StopStringMatcher matcher = new StopStringMatcher(List.of("abcd", "bc"));
    assertThat(matcher.accept("xab")).isEqualTo("x");
    assertThat(matcher.accept("cd")).isEqualTo("a");
    assertThat(matcher.matched()).isTrue();
  }

  @Test
  void takesTheLongestOfThoseCompleteAtOnce() {
    StopStringMatcher matcher = new StopStringMatcher(List.of("c", "bc", "abc"));
    assertThat(matcher.accept("xab")).isEqualTo("x");
    assertThat(matcher.accept("c")).isEmpty();
  }

  @Test
  void doesNotMatchAcrossARelease() {
    StopStringMatcher matcher = new StopStringMatcher(List.of("end"));
    assertThat(matcher.accept("the en")).isEqualTo("the ");
    assertThat(matcher.release()).isEqualTo("en");
    assertThat(matcher.accept("d")).isEqualTo("d");
    assertThat(matcher.matched()).isFalse();
  }

  @Test
  void holdsNoMoreThanALongPeriodicStopStringNeeds() {
    StopStringMatcher matcher = new StopStringMatcher(List.of("ab".repeat(500) + "c"));
    List<String> sent = new ArrayList<>();
    for (int i = 0; i < 2000; i++) {
      sent.add(matcher.accept("ab"));
    }
    assertThat(String.join("", sent)).isEqualTo("ab".repeat(1500));
    assertThat(matcher.accept("c")).isEmpty();
    assertThat(matcher.matched()).isTrue();
  }
}
