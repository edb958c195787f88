package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;

/** Compiles constraints to rules of a grammar. */
final class ConstraintCompiler {
  private static final int MAX_CHOICES = 10_000;

  private final GrammarBuilder grammar = new GrammarBuilder();
  private final JsonRules json = new JsonRules(grammar);

  GrammarBuilder grammar() {
    return grammar;
  }

  JsonRules json() {
    return json;
  }

  /** The start of the rule of a constraint. */
  int rule(OutputConstraint constraint) {
    try {
      return switch (constraint) {
        case OutputConstraint.JsonSchema(var schema) ->
            new SchemaCompiler(grammar, json, schema, "").compile();
        case OutputConstraint.JsonObject() -> json.object();
        case OutputConstraint.Regex(String pattern) -> regex(pattern);
        case OutputConstraint.Choice(List<String> choices) -> choice(choices);
      };
    } catch (GrammarBuilder.TooLarge e) {
      throw new InvalidConstraintException(
          "", "The constraint needs too large an automaton; make it smaller.", e);
    }
  }

  private int regex(String pattern) {
    Dfa language =
        RegexCompiler.compile(
            RegexParser.parseWhole(pattern, ""), RegexCompiler.Encoding.PLAIN, "");
    int start = grammar.node();
    grammar.language(start, language, grammar.endNode());
    return start;
  }

  private int choice(List<String> choices) {
    if (choices.isEmpty() || choices.size() > MAX_CHOICES) {
      throw new InvalidConstraintException(
          "",
          "%,d choices given; there must be at least one and at most %,d."
              .formatted(choices.size(), MAX_CHOICES));
    }
    List<byte[]> texts = new ArrayList<>();
    for (String choice : choices) {
      if (choice.codePoints().anyMatch(c -> c >= 0xD800 && c <= 0xDFFF)) {
        throw new InvalidConstraintException(
            "", "A choice has half of a surrogate pair; give whole characters.");
      }
      texts.add(choice.getBytes(UTF_8));
    }
    int start = grammar.node();
    grammar.literals(start, texts, grammar.endNode());
    return start;
  }
}
