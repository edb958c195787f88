package dev.lily.engine.constraint;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import java.util.regex.Pattern;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.databind.node.StringNode;

/** Regular expressions against the JDK's, alone and inside JSON strings. */
class RegexPropertyTest {
  private static final List<String> ATOMS =
      List.of(
          "a",
          "b",
          "é",
          "\uD83D\uDE00",
          "[ab]",
          "[^a]",
          "\\d",
          "\\w",
          "\\S",
          ".",
          "\"",
          "\\\\",
          "\\n");
  private static final List<String> QUANTIFIERS =
      List.of("", "", "", "*", "+", "?", "{2}", "{1,3}");
  private static final String ALPHABET = "ab1é\uD83D\uDE00\"\\ \n_z";

  @Property(tries = 300)
  void acceptsWhatTheJdkMatches(@ForAll long seed) {
    Random random = new Random(seed);
    String pattern = expression(random, 2);
    Pattern jdk = Pattern.compile(pattern, Pattern.UNICODE_CASE);
    Grammar whole;
    Grammar inJson;
    try {
      whole = Texts.regex(pattern);
      inJson = inString(pattern);
    } catch (InvalidConstraintException e) {
      assertThat(e).hasMessageContaining("too large an automaton");
      return;
    }
    for (int i = 0; i < 30; i++) {
      String text = text(random);
      assertThat(Texts.accepts(whole, text))
          .as("%s matches %s", pattern, text)
          .isEqualTo(jdk.matcher(text).matches());
      String json = StringNode.valueOf(text).toString();
      assertThat(Texts.accepts(inJson, json))
          .as("%s found in %s", pattern, json)
          .isEqualTo(jdk.matcher(text).find());
    }
  }

  private static Grammar inString(String pattern) {
    ObjectNode schema = JsonNodeFactory.instance.objectNode();
    schema.put("type", "string").put("pattern", pattern);
    return Grammar.compile(new OutputConstraint.JsonSchema(schema));
  }

  private static String expression(Random random, int depth) {
    StringBuilder pattern = new StringBuilder();
    for (int i = 0; i < 1 + random.nextInt(3); i++) {
      if (depth > 0 && random.nextInt(3) == 0) {
        pattern.append("(").append(expression(random, depth - 1)).append("|");
        pattern.append(expression(random, depth - 1)).append(")");
      } else {
        pattern.append(ATOMS.get(random.nextInt(ATOMS.size())));
      }
      pattern.append(QUANTIFIERS.get(random.nextInt(QUANTIFIERS.size())));
    }
    return pattern.toString();
  }

  private static String text(Random random) {
    StringBuilder text = new StringBuilder();
    int[] characters = ALPHABET.codePoints().toArray();
    for (int i = 0; i < random.nextInt(6); i++) {
      text.appendCodePoint(characters[random.nextInt(characters.length)]);
    }
    return text.toString();
  }
}
