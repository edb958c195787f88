package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Collection;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.StringNode;

/**
 * The names that the undeclared properties of an object may have: none of the declared ones, and
 * what {@code propertyNames} says of length, pattern and format.
 */
final class OtherNames {
  private static final RegexCompiler.Encoding ENCODING = RegexCompiler.Encoding.JSON_STRING;

  private final GrammarBuilder grammar;
  private final JsonRules json;
  private final SchemaLocation schema;
  private final @Nullable Assertions asserted;
  private final int min;
  private final int max;

  /**
   * @param assertions of the object
   * @param schema the object's
   */
  OtherNames(
      GrammarBuilder grammar,
      JsonRules json,
      SchemaCompiler schemas,
      Assertions assertions,
      SchemaLocation schema) {
    this.grammar = grammar;
    this.json = json;
    SchemaLocation keyword = assertions.find("propertyNames");
    this.schema = keyword == null ? schema : keyword;
    asserted = keyword == null ? null : supported(schemas.assertions(keyword), keyword);
    min = asserted == null ? 0 : asserted.largestCount("minLength");
    max = asserted == null ? GrammarBuilder.UNBOUNDED : asserted.smallestCount("maxLength");
    if (asserted != null) {
      asserted.requireOrder("minLength", min, "maxLength", max);
    }
  }

  private static Assertions supported(Assertions names, SchemaLocation keyword) {
    Set<String> types = names.types();
    if (names.impossible() || (types != null && !types.contains("string"))) {
      throw keyword.refused("No name is allowed. Use additionalProperties false.");
    }
    if (!names.choices().isEmpty()) {
      throw names.choices().getFirst().refused("Names cannot have alternatives; use a pattern.");
    }
    for (String assertion : names.names()) {
      switch (assertion) {
        case "type", "minLength", "maxLength", "pattern", "format" -> {}
        default ->
            throw names
                .all(assertion)
                .getFirst()
                .refused("'%s' is not supported for names.".formatted(assertion));
      }
    }
    return names;
  }

  /** Refuses declared names that {@code propertyNames} does not allow. */
  void requireAllowed(Collection<String> declared) {
    if (asserted == null) {
      return;
    }
    Dfa allowed = allowed();
    for (String name : declared) {
      if (!accepts(allowed, name)) {
        throw schema.refused(
            "The property '%s' is declared or required, but its name is not allowed here."
                .formatted(name));
      }
    }
  }

  private static boolean accepts(Dfa names, String name) {
    String quoted = StringNode.valueOf(name).toString();
    int state = names.start();
    for (byte b : quoted.substring(1, quoted.length() - 1).getBytes(UTF_8)) {
      state = names.step(state, b & 0xFF);
      if (state == ByteAutomaton.DEAD) {
        return false;
      }
    }
    return names.accepts(state);
  }

  private Dfa allowed() {
    Dfa anything = RegexCompiler.compile(RegexNode.ANYTHING, ENCODING, schema.path());
    return asserted == null
        ? anything
        : ScalarLanguages.strings(asserted, min, max, schema, ENCODING, anything);
  }

  /** The rule of the names, with their quotation marks. */
  int rule(Collection<String> declared) {
    if (declared.isEmpty() && (asserted == null || !asserted.hasAny("pattern", "format"))) {
      return json.string(min, max);
    }
    List<RegexNode> taken =
        declared.stream()
            .<RegexNode>map(
                name ->
                    new RegexNode.Sequence(
                        name.codePoints()
                            .<RegexNode>mapToObj(c -> new RegexNode.OneOf(CodePoints.of(c)))
                            .toList()))
            .toList();
    Dfa inside;
    try {
      inside =
          Dfa.difference(
              allowed(),
              RegexCompiler.compile(new RegexNode.Choice(taken), ENCODING, schema.path()));
    } catch (Dfa.TooManyStates e) {
      throw new InvalidConstraintException(
          schema.path(), "The names of the properties are too long in all; use shorter ones.", e);
    }
    int start = grammar.node();
    int opened = grammar.node();
    int closed = grammar.node();
    grammar.bytes(start, '"', '"', opened);
    grammar.language(opened, inside, closed);
    grammar.bytes(closed, '"', '"', grammar.endNode());
    return start;
  }
}
