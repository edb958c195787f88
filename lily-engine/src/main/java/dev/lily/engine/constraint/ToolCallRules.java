package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/**
 * Calls in the format of the Qwen3.5 family: a tag with the tool's name and, for each argument, a
 * tag with its name around its value. A string is written as it is, every other value as JSON.
 * There are no escapes, so strings cannot contain the tags themselves.
 */
final class ToolCallRules {
  private static final List<String> TAGS =
      List.of(
          "<tool_call>",
          "</tool_call>",
          "<function=",
          "</function>",
          "<parameter=",
          "</parameter>");
  private static final Dfa STRING =
      Dfa.intersection(
          RegexCompiler.compile(RegexNode.ANYTHING, RegexCompiler.Encoding.PLAIN, ""),
          new ForbiddenTexts(TAGS));
  private static final CodePoints LETTERS = CodePoints.of('A', 'Z').union(CodePoints.of('a', 'z'));

  /** Strings that no reader takes for a value of another type. */
  private static final Dfa WORDS =
      RegexCompiler.compile(
          new RegexNode.Sequence(List.of(new RegexNode.OneOf(LETTERS), RegexNode.ANYTHING)),
          RegexCompiler.Encoding.PLAIN,
          "");

  private final GrammarBuilder grammar;
  private final JsonRules json;

  ToolCallRules(GrammarBuilder grammar, JsonRules json) {
    this.grammar = grammar;
    this.json = json;
  }

  /**
   * Adds the call of a tool.
   *
   * @param from the node behind {@code <function=}
   * @param to the node before the end of the block
   * @return the compiler of the tool's schema, which has to be finished
   */
  SchemaCompiler emit(AnswerShape.Tool tool, int from, int to) {
    SchemaCompiler schemas = new SchemaCompiler(grammar, json, tool.parameters(), tool.path());
    requireName(tool.name(), schemas.root());
    Assertions arguments = schemas.assertions(schemas.root());
    requireObject(arguments, schemas.root());
    Set<String> required = ObjectRules.required(arguments);
    int before = grammar.node();
    int named = grammar.node();
    grammar.epsilon(from, named);
    grammar.epsilon(grammar.literal(named, (tool.name() + ">\n").getBytes(UTF_8)), before);
    for (var property : ObjectRules.declared(arguments).entrySet()) {
      requireName(property.getKey(), property.getValue());
      int behind = grammar.node();
      if (!required.remove(property.getKey())) {
        grammar.epsilon(before, behind);
      }
      String tag = "<parameter=" + property.getKey() + ">\n";
      int value = grammar.literal(before, tag.getBytes(UTF_8));
      int written = grammar.node();
      value(schemas, property.getValue(), value, written);
      grammar.epsilon(grammar.literal(written, "\n</parameter>\n".getBytes(UTF_8)), behind);
      before = behind;
    }
    if (!required.isEmpty()) {
      throw arguments
          .all("required")
          .getFirst()
          .refused("'%s' is required but not declared.".formatted(required.iterator().next()));
    }
    grammar.epsilon(grammar.literal(before, "</function>\n".getBytes(UTF_8)), to);
    return schemas;
  }

  private static void requireName(String name, SchemaLocation place) {
    boolean right =
        !name.isEmpty() && name.chars().allMatch(c -> c > ' ' && "<>{}\"'`".indexOf(c) < 0);
    if (!right) {
      throw place.refused(
          "The name '%s' cannot be written in a call; use letters, digits, '_', '.' and '-'."
              .formatted(name));
    }
  }

  private static void requireObject(Assertions arguments, SchemaLocation schema) {
    Set<String> types = arguments.types();
    if (types != null && !types.contains("object")) {
      throw schema.child("type").refused("The arguments of a tool are an object.");
    }
    for (String keyword : arguments.names()) {
      switch (keyword) {
        case "type", "properties", "required", "additionalProperties" -> {}
        default ->
            throw arguments
                .all(keyword)
                .getFirst()
                .refused("'%s' cannot be enforced for all arguments at once.".formatted(keyword));
      }
    }
    if (!arguments.choices().isEmpty()) {
      throw arguments
          .choices()
          .getFirst()
          .refused(
              "Alternatives for all arguments at once cannot be enforced; declare properties.");
    }
    if (arguments.impossible()) {
      throw schema.refused("The schema accepts no arguments.");
    }
  }

  private void value(SchemaCompiler schemas, SchemaLocation schema, int from, int to) {
    Assertions assertions = schemas.assertions(schema);
    if (!assertions.choices().isEmpty()) {
      choices(schemas, schema, assertions, from, to);
    } else if (assertions.has("enum") || assertions.has("const")) {
      listed(assertions, schema, from, to);
    } else {
      Set<String> types = assertions.types();
      if (types == null) {
        types = SchemaCompiler.impliedTypes(assertions);
      }
      if (types.isEmpty()) {
        types = Set.of("string");
      }
      typed(schemas, schema, assertions, types, from, to);
    }
  }

  /** Alternatives, as long as at most one of them is about strings. */
  private void choices(
      SchemaCompiler schemas, SchemaLocation schema, Assertions assertions, int from, int to) {
    SchemaLocation choice = assertions.choices().getFirst();
    boolean simple = assertions.isEmpty() && assertions.choices().size() == 1;
    List<SchemaLocation> strings = new ArrayList<>();
    Set<String> otherTypes = new LinkedHashSet<>();
    for (int i = 0; simple && i < choice.node().size(); i++) {
      Assertions branch = schemas.assertions(choice.child(i));
      Set<String> types = branch.types();
      if (!branch.choices().isEmpty() || (types == null && !branch.has("const"))) {
        simple = false;
      } else if (types != null && types.equals(Set.of("string"))) {
        strings.add(choice.child(i));
      } else if (types == null || types.contains("string")) {
        simple = false;
      } else {
        otherTypes.addAll(types);
      }
    }
    if (!simple || strings.size() > 1) {
      throw choice.refused(
          "An argument's alternatives must each name one type, at most one of them string.");
    }
    grammar.call(from, jsonOnly(schemas, choice, strings), to);
    if (!strings.isEmpty()) {
      Assertions string = schemas.assertions(strings.getFirst());
      if (string.has("enum") || string.has("const")) {
        listed(string, strings.getFirst(), from, to);
      } else {
        string(string, schema, from, to, !otherTypes.equals(Set.of("null")));
      }
    }
  }

  private int jsonOnly(
      SchemaCompiler schemas, SchemaLocation choice, List<SchemaLocation> strings) {
    int start = grammar.node();
    int end = grammar.endNode();
    for (int i = 0; i < choice.node().size(); i++) {
      SchemaLocation branch = choice.child(i);
      if (strings.stream().noneMatch(s -> s.path().equals(branch.path()))) {
        grammar.call(start, schemas.rule(branch), end);
      }
    }
    return start;
  }

  private void typed(
      SchemaCompiler schemas,
      SchemaLocation schema,
      Assertions assertions,
      Set<String> types,
      int from,
      int to) {
    if (!types.contains("string")) {
      grammar.call(from, schemas.rule(schema), to);
      return;
    }
    Set<String> others = new LinkedHashSet<>(types);
    others.remove("string");
    string(assertions, schema, from, to, !others.isEmpty() && !others.equals(Set.of("null")));
    if (!others.isEmpty()) {
      int start = grammar.node();
      schemas.emitTypes(others, assertions, schema, start, grammar.endNode());
      grammar.call(from, start, to);
    }
  }

  private void string(
      Assertions assertions, SchemaLocation schema, int from, int to, boolean wordsOnly) {
    int min = assertions.largestCount("minLength");
    int max = assertions.smallestCount("maxLength");
    assertions.requireOrder("minLength", min, "maxLength", max);
    int start = grammar.node();
    int end = grammar.endNode();
    if (!wordsOnly && !assertions.hasAny("pattern", "format")) {
      grammar.countedLanguage(start, STRING, min, max, end);
    } else {
      RegexCompiler.Encoding plain = RegexCompiler.Encoding.PLAIN;
      Dfa strings =
          wordsOnly
              ? ScalarLanguages.strings(assertions, min, max, schema, plain, STRING, WORDS)
              : ScalarLanguages.strings(assertions, min, max, schema, plain, STRING);
      grammar.language(start, strings, end);
    }
    grammar.call(from, start, to);
  }

  private void listed(Assertions assertions, SchemaLocation schema, int from, int to) {
    List<byte[]> texts = new ArrayList<>();
    for (JsonNode value : SchemaCompiler.listedValues(assertions)) {
      String text = value.isString() ? value.stringValue() : value.toString();
      for (String tag : TAGS) {
        if (text.contains(tag)) {
          throw schema.refused("A listed value contains " + tag + ", which ends an argument.");
        }
      }
      texts.add(text.getBytes(UTF_8));
    }
    grammar.literals(from, texts, to);
  }
}
