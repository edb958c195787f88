package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * Compiles a JSON schema to rules. Each schema in it becomes one rule, compiled when its turn
 * comes, so that neither nesting nor recursion deepens the stack of the compiler.
 */
final class SchemaCompiler {
  private static final Set<String> SCALARS =
      Set.of(
          "type",
          "minimum",
          "maximum",
          "exclusiveMinimum",
          "exclusiveMaximum",
          "multipleOf",
          "minLength",
          "maxLength",
          "pattern",
          "format");

  private final GrammarBuilder grammar;
  private final JsonRules json;
  private final SchemaDocument document;
  private final Assertions.Budget budget = new Assertions.Budget();
  private final IdentityHashMap<JsonNode, Integer> rules = new IdentityHashMap<>();
  private final Map<String, Integer> scalarRules = new HashMap<>();
  private final ArrayDeque<Task> tasks = new ArrayDeque<>();
  private final Disjointness disjointness;

  private record Task(SchemaLocation schema, int rule) {}

  /**
   * @param path JSON pointer of the schema in what the caller gave
   */
  SchemaCompiler(GrammarBuilder grammar, JsonRules json, JsonNode schema, String path) {
    this.grammar = grammar;
    this.json = json;
    document = new SchemaDocument(schema, path);
    disjointness = new Disjointness(document, budget);
  }

  /** The schema as a whole. */
  SchemaLocation root() {
    return document.root();
  }

  /**
   * Compiles the schema.
   *
   * @return the start of its rule
   * @throws InvalidConstraintException if it is not in the subset or can never be satisfied
   */
  int compile() {
    int root = rule(root());
    finish();
    return root;
  }

  /**
   * Compiles what has been asked for.
   *
   * @throws InvalidConstraintException if it is not in the subset or can never be satisfied
   */
  void finish() {
    SchemaLocation at = root();
    try {
      while (!tasks.isEmpty()) {
        Task task = tasks.remove();
        at = task.schema();
        emit(assertions(at), at, task.rule(), grammar.endNode(), 0);
      }
    } catch (GrammarBuilder.TooLarge e) {
      throw new InvalidConstraintException(
          at.path(), "The schema needs too large an automaton; make it smaller.", e);
    }
  }

  /** The start of the rule of a schema. */
  int rule(SchemaLocation schema) {
    SchemaLocation resolved = document.resolve(schema);
    Integer known = rules.get(resolved.node());
    if (known == null) {
      known = newRule(resolved);
      rules.put(resolved.node(), known);
    }
    return known;
  }

  private int newRule(SchemaLocation schema) {
    String scalar = scalarKey(schema.node());
    if (scalar != null) {
      Integer same = scalarRules.get(scalar);
      if (same != null) {
        return same;
      }
    }
    int rule = grammar.node();
    if (scalar != null) {
      scalarRules.put(scalar, rule);
    }
    grammar.comesFrom(rule, schema.path());
    tasks.add(new Task(schema, rule));
    return rule;
  }

  /** What a schema of a scalar asserts, as text; {@code null} for others. */
  private static @Nullable String scalarKey(JsonNode schema) {
    if (!schema.isObject()) {
      return schema.isBoolean() ? schema.toString() : null;
    }
    StringBuilder key = new StringBuilder();
    for (String name : schema.propertyNames()) {
      if (SCALARS.contains(name)) {
        key.append(name).append(schema.path(name)).append(' ');
      } else if (!SchemaDocument.isAnnotation(name)) {
        return null;
      }
    }
    return key.toString();
  }

  /** What a schema asserts, its references followed. */
  Assertions assertions(SchemaLocation schema) {
    Assertions assertions = new Assertions(document, budget);
    assertions.add(schema);
    return assertions;
  }

  private void emit(Assertions assertions, SchemaLocation schema, int from, int to, int depth) {
    if (assertions.impossible()) {
      return;
    }
    if (depth > 32) {
      throw schema.refused("anyOf and oneOf are nested more than 32 deep.");
    }
    if (!assertions.choices().isEmpty()) {
      emitChoice(assertions, assertions.choices().getFirst(), schema, from, to, depth);
    } else if (assertions.has("enum") || assertions.has("const")) {
      emitLiterals(assertions, from, to);
    } else {
      Set<String> types = assertions.types();
      if (types == null) {
        types = impliedTypes(assertions);
      } else if (types.isEmpty()) {
        throw schema.child("type").refused("No type is allowed by all parts of this schema.");
      }
      emitTypes(types, assertions, schema, from, to);
    }
  }

  private void emitChoice(
      Assertions assertions,
      SchemaLocation choice,
      SchemaLocation schema,
      int from,
      int to,
      int depth) {
    boolean alone = assertions.isEmpty() && assertions.choices().size() == 1;
    int branches = choice.node().size();
    if (branches > Matcher.MAX_READINGS / 2) {
      throw choice.refused(
          "%d branches; at most %d are supported.".formatted(branches, Matcher.MAX_READINGS / 2));
    }
    List<Assertions> merged = new ArrayList<>();
    for (int i = 0; i < branches; i++) {
      merged.add(assertions.choosing(choice, choice.child(i)));
    }
    if (choice.path().endsWith("/oneOf")) {
      disjointness.require(choice, merged);
    }
    for (int i = 0; i < branches; i++) {
      if (alone) {
        grammar.call(from, rule(choice.child(i)), to);
      } else {
        int start = grammar.node();
        grammar.epsilon(from, start);
        emit(merged.get(i), schema, start, to, depth + 1);
      }
    }
  }

  private void emitLiterals(Assertions assertions, int from, int to) {
    List<byte[]> texts = new ArrayList<>();
    for (JsonNode value : listedValues(assertions)) {
      texts.add(value.toString().getBytes(UTF_8));
    }
    grammar.literals(from, texts, to);
  }

  /** The values that {@code enum} and {@code const} leave; at least one. */
  static Set<JsonNode> listedValues(Assertions assertions) {
    List<SchemaLocation> places = new ArrayList<>(assertions.all("enum"));
    places.addAll(assertions.all("const"));
    Set<JsonNode> values = new LinkedHashSet<>(literals(places.getFirst()));
    for (SchemaLocation place : places) {
      values.retainAll(literals(place));
    }
    Set<String> types = assertions.types();
    if (types != null) {
      values.removeIf(value -> !hasType(value, types));
    }
    SchemaLocation place = places.getFirst();
    for (String keyword : assertions.names()) {
      switch (keyword) {
        case "enum", "const", "type" -> {}
        default ->
            throw place.refused(
                "'%s' at %s cannot be combined with listed values; list only values that satisfy it."
                    .formatted(keyword, assertions.all(keyword).getFirst().path()));
      }
    }
    if (values.isEmpty()) {
      throw place.refused("No value is left that the schema allows; list at least one.");
    }
    for (JsonNode value : values) {
      if (value.toString().codePoints().anyMatch(c -> c >= 0xD800 && c <= 0xDFFF)) {
        throw place.refused("A listed value has half of a surrogate pair; give whole characters.");
      }
    }
    return values;
  }

  private static Set<JsonNode> literals(SchemaLocation keyword) {
    if (keyword.path().endsWith("/const")) {
      return Set.of(keyword.node());
    }
    Set<JsonNode> values = new LinkedHashSet<>();
    if (!keyword.node().isArray()) {
      throw keyword.refused("the value must be an array.");
    }
    keyword.node().forEach(values::add);
    return values;
  }

  static boolean hasType(JsonNode value, Set<String> types) {
    return switch (value.getNodeType()) {
      case NULL -> types.contains("null");
      case BOOLEAN -> types.contains("boolean");
      case NUMBER ->
          types.contains("number")
              || (types.contains("integer")
                  && value.decimalValue().stripTrailingZeros().scale() <= 0);
      case STRING -> types.contains("string");
      case ARRAY -> types.contains("array");
      case OBJECT -> types.contains("object");
      case BINARY, MISSING, POJO -> false;
    };
  }

  /** A schema without a type means the types its keywords are about; without those, any. */
  static Set<String> impliedTypes(Assertions assertions) {
    Set<String> types = new LinkedHashSet<>();
    if (assertions.hasAny(
        "properties",
        "required",
        "additionalProperties",
        "propertyNames",
        "minProperties",
        "maxProperties")) {
      types.add("object");
    }
    if (assertions.hasAny("items", "prefixItems", "minItems", "maxItems")) {
      types.add("array");
    }
    if (assertions.hasAny("minLength", "maxLength", "pattern")) {
      types.add("string");
    }
    if (assertions.hasAny(
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")) {
      types.add("number");
    }
    if (types.isEmpty() && assertions.has("format")) {
      types.add("string");
    }
    return types;
  }

  /** Adds the values of some types. */
  void emitTypes(
      Set<String> types, Assertions assertions, SchemaLocation schema, int from, int to) {
    if (types.isEmpty()) {
      grammar.call(from, json.value(), to);
      return;
    }
    for (String type : types) {
      int start = grammar.node();
      grammar.epsilon(from, start);
      switch (type) {
        case "null" -> grammar.literals(start, List.of("null".getBytes(UTF_8)), to);
        case "boolean" -> grammar.call(start, json.bool(), to);
        case "integer", "number" -> {
          if (type.equals("number") || !types.contains("number")) {
            grammar.language(start, ScalarLanguages.numbers(type, assertions, schema), to);
          }
        }
        case "string" -> emitString(assertions, schema, start, to);
        case "array" -> new ArrayRules(grammar, json, this).emit(assertions, start, to);
        case "object" -> new ObjectRules(grammar, json, this).emit(assertions, schema, start, to);
        default -> throw new IllegalStateException("Unknown type " + type);
      }
    }
  }

  private void emitString(Assertions assertions, SchemaLocation schema, int from, int to) {
    int min = assertions.largestCount("minLength");
    int max = assertions.smallestCount("maxLength");
    assertions.requireOrder("minLength", min, "maxLength", max);
    if (!assertions.hasAny("pattern", "format")) {
      grammar.call(from, json.string(min, max), to);
      return;
    }
    Dfa inside =
        ScalarLanguages.strings(assertions, min, max, schema, RegexCompiler.Encoding.JSON_STRING);
    int opened = grammar.node();
    int closed = grammar.node();
    grammar.bytes(from, '"', '"', opened);
    grammar.language(opened, inside, closed);
    grammar.bytes(closed, '"', '"', to);
  }
}
