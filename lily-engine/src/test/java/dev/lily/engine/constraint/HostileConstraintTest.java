package dev.lily.engine.constraint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/** Constraints that try to take all memory, all time or the stack. */
class HostileConstraintTest {
  private static void refused(String schema) {
    assertThatThrownBy(() -> Texts.schema(schema)).isInstanceOf(InvalidConstraintException.class);
  }

  @Test
  void refusesDeepText() {
    refused("{'items':".repeat(50_000) + "{}" + "}".repeat(50_000));
    refused("[".repeat(3_000) + "]".repeat(3_000));
  }

  @Test
  void refusesDeepTrees() {
    ObjectNode root = JsonNodeFactory.instance.objectNode();
    ObjectNode at = root;
    for (int i = 0; i < 50_000; i++) {
      at = at.putObject("items");
    }
    JsonNode schema = root;
    assertThatThrownBy(() -> Grammar.compile(new OutputConstraint.JsonSchema(schema)))
        .isInstanceOf(InvalidConstraintException.class)
        .hasMessageContaining("deep");
  }

  @Test
  void refusesMillionsOfAlternatives() {
    String values =
        IntStream.range(0, 1000).mapToObj(Integer::toString).collect(Collectors.joining(","));
    String branch = "{'enum':[" + values + "]}";
    refused("{'anyOf':[" + String.join(",", java.util.Collections.nCopies(1000, branch)) + "]}");
  }

  @Test
  void refusesReferencesThatMultiply() {
    StringBuilder definitions = new StringBuilder("'d0':{'type':'null'}");
    for (int i = 1; i < 40; i++) {
      definitions.append(
          ",'d%d':{'allOf':[{'$ref':'#/$defs/d%d'},{'$ref':'#/$defs/d%d'}],'minimum':1}"
              .formatted(i, i - 1, i - 1));
    }
    refused("{'$ref':'#/$defs/d39','$defs':{" + definitions + "}}");
  }

  @Test
  void refusesChoicesThatMultiply() {
    List<String> parts = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      parts.add("{'anyOf':[{'minimum':%d},{'maximum':%d}]}".formatted(i, i + 100));
    }
    refused("{'type':'integer','allOf':[" + String.join(",", parts) + "]}");
  }

  @Test
  void followsLongChainsOfReferencesWithoutDeepeningTheStack() {
    StringBuilder definitions = new StringBuilder("'d0':{'type':'null'}");
    for (int i = 1; i < 3000; i++) {
      definitions.append(
          ",'d%d':{'type':'array','items':{'$ref':'#/$defs/d%d'}}".formatted(i, i - 1));
    }
    Grammar grammar = Texts.schema("{'$ref':'#/$defs/d2999','$defs':{" + definitions + "}}");
    assertThat(Texts.accepts(grammar, "[[],[]]")).isTrue();
  }

  @Test
  void refusesWhatIsNestedTooDeepEvenAtItsFlattest() {
    StringBuilder definitions = new StringBuilder("'d0':{'type':'null'}");
    for (int i = 1; i < 3000; i++) {
      definitions.append(
          ",'d%d':{'type':'array','minItems':1,'items':{'$ref':'#/$defs/d%d'}}"
              .formatted(i, i - 1));
    }
    refused("{'$ref':'#/$defs/d2999','$defs':{" + definitions + "}}");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "(a|b)*a(a|b){30}",
        "((a{1000}){1000}){1000}",
        "(.*){1000}x",
        ".*a.{900}",
        "a{99999999999}",
        "(",
        "[z-a]",
        "a**",
        "x{2,1}",
        "\\u{110000}",
        "\\"
      })
  void refusesPatternsThatWouldExplodeOrAreWrong(String pattern) {
    assertThatThrownBy(() -> Texts.regex(pattern)).isInstanceOf(InvalidConstraintException.class);
  }

  @Test
  void refusesDeepGroups() {
    assertThatThrownBy(() -> Texts.regex("(".repeat(2000) + ")".repeat(2000)))
        .isInstanceOf(InvalidConstraintException.class);
  }

  @Test
  void patternsThatOthersBacktrackOnAreLinear() {
    Grammar grammar = Texts.regex("(a+)+b|(a|aa)+c");
    assertThat(Texts.accepts(grammar, "a".repeat(5000) + "d")).isFalse();
    assertThat(Texts.accepts(grammar, "a".repeat(5000) + "c")).isTrue();
  }

  @Test
  void followsAmbiguousAlternativesWithoutMultiplyingThem() {
    Grammar grammar =
        Texts.schema(
            "{'anyOf':[{'type':'array','items':{'$ref':'#'}},"
                + "{'type':'array','items':{'$ref':'#'},'maxItems':5},{'type':'null'}]}");
    Matcher matcher = new Matcher(grammar, Texts.bytes());
    for (int i = 0; i < 40; i++) {
      matcher.advance('[');
    }
    assertThat(matcher.present().size).isLessThanOrEqualTo(Matcher.MAX_READINGS);
    for (int i = 0; i < 40; i++) {
      matcher.advance(']');
    }
    assertThat(matcher.isComplete()).isTrue();
  }
}
