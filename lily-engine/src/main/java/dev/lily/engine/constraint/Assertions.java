package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * What a schema asserts, together with what it refers to and what all of its {@code allOf} assert.
 * Each keyword is there with every place that gives it; {@code anyOf} and {@code oneOf} are kept
 * for later.
 */
final class Assertions {
  private static final Set<String> MERGED =
      Set.of(
          "type",
          "enum",
          "const",
          "minimum",
          "maximum",
          "exclusiveMinimum",
          "exclusiveMaximum",
          "minLength",
          "maxLength",
          "minItems",
          "maxItems",
          "minProperties",
          "maxProperties",
          "required",
          "properties");
  private static final Set<String> SINGLE =
      Set.of(
          "multipleOf",
          "pattern",
          "format",
          "items",
          "prefixItems",
          "additionalProperties",
          "propertyNames");
  private static final int MAX_MERGES = 5000;
  private static final int MAX_DEPTH = 64;

  /** Counts merges of a whole compilation, so that references cannot multiply without end. */
  static final class Budget {
    private int merges;

    void spend(SchemaLocation schema) {
      if (++merges > MAX_MERGES) {
        throw schema.refused(
            "The schema's allOf, anyOf, oneOf and $ref multiply to more than "
                + MAX_MERGES
                + " combinations; make it smaller.");
      }
    }
  }

  private final SchemaDocument document;
  private final Budget budget;
  private final Map<String, List<SchemaLocation>> keywords = new LinkedHashMap<>();

  /** {@code anyOf} and {@code oneOf}, not yet chosen from. */
  private final List<SchemaLocation> choices = new ArrayList<>();

  /** Whether a part of it accepts nothing. */
  private boolean impossible;

  Assertions(SchemaDocument document, Budget budget) {
    this.document = document;
    this.budget = budget;
  }

  /** These assertions without one choice, and what one of its branches asserts. */
  Assertions choosing(SchemaLocation choice, SchemaLocation branch) {
    Assertions chosen = new Assertions(document, budget);
    keywords.forEach((name, places) -> chosen.keywords.put(name, new ArrayList<>(places)));
    choices.stream().filter(c -> !c.equals(choice)).forEach(chosen.choices::add);
    chosen.impossible = impossible;
    chosen.add(branch);
    return chosen;
  }

  void add(SchemaLocation schema) {
    add(schema, 0);
  }

  private void add(SchemaLocation schema, int depth) {
    budget.spend(schema);
    if (depth > MAX_DEPTH) {
      throw schema.refused("allOf and $ref lead more than " + MAX_DEPTH + " deep or in a circle.");
    }
    JsonNode node = schema.node();
    if (node.isBoolean()) {
      impossible |= !node.booleanValue();
      return;
    }
    if (!node.isObject()) {
      throw schema.refused(
          "A schema must be an object or a boolean; this is " + schema.shown() + ".");
    }
    for (String name : node.propertyNames()) {
      SchemaLocation keyword = schema.child(name);
      switch (name) {
        case "$ref" -> add(document.target(keyword), depth + 1);
        case "allOf" -> {
          requireBranches(keyword);
          for (int i = 0; i < keyword.node().size(); i++) {
            add(keyword.child(i), depth + 1);
          }
        }
        case "anyOf", "oneOf" -> {
          requireBranches(keyword);
          choices.add(keyword);
        }
        case "uniqueItems" -> refuseIfTrue(keyword);
        default -> addKeyword(name, keyword);
      }
    }
  }

  private static void requireBranches(SchemaLocation keyword) {
    if (!keyword.node().isArray() || keyword.node().isEmpty()) {
      throw keyword.refused("the value must be an array of at least one schema.");
    }
  }

  private static void refuseIfTrue(SchemaLocation keyword) {
    if (!keyword.node().isBoolean() || keyword.node().booleanValue()) {
      throw keyword.refused(
          "uniqueItems cannot be enforced token by token. Leave it out and check afterwards.");
    }
  }

  private void addKeyword(String name, SchemaLocation keyword) {
    if (SchemaDocument.isAnnotation(name)) {
      return;
    }
    if (!MERGED.contains(name) && !SINGLE.contains(name)) {
      throw keyword.refused(
          "The keyword '%s' is not in the supported subset. Leave it out and check afterwards."
              .formatted(name));
    }
    List<SchemaLocation> places = keywords.computeIfAbsent(name, _ -> new ArrayList<>());
    for (SchemaLocation place : places) {
      if (place.node().equals(keyword.node())) {
        return;
      }
    }
    if (!places.isEmpty() && SINGLE.contains(name)) {
      throw keyword.refused(
          "'%s' is given here and, differently, at %s; give it once for the same value."
              .formatted(name, places.getFirst().path()));
    }
    places.add(keyword);
  }

  boolean impossible() {
    return impossible;
  }

  boolean isEmpty() {
    return keywords.isEmpty();
  }

  List<SchemaLocation> choices() {
    return choices;
  }

  Set<String> names() {
    return keywords.keySet();
  }

  boolean has(String keyword) {
    return keywords.containsKey(keyword);
  }

  boolean hasAny(String... names) {
    for (String name : names) {
      if (has(name)) {
        return true;
      }
    }
    return false;
  }

  /** Every place that gives a keyword. */
  List<SchemaLocation> all(String keyword) {
    return keywords.getOrDefault(keyword, List.of());
  }

  /** The place that gives a keyword, if there is one. */
  @Nullable SchemaLocation find(String keyword) {
    List<SchemaLocation> places = all(keyword);
    return places.isEmpty() ? null : places.getFirst();
  }

  /** The largest of a lower bound. */
  int largestCount(String keyword) {
    int largest = 0;
    for (SchemaLocation place : all(keyword)) {
      largest = Math.max(largest, place.count());
    }
    return largest;
  }

  /** The smallest of an upper bound; {@link GrammarBuilder#UNBOUNDED} if there is none. */
  int smallestCount(String keyword) {
    int smallest = GrammarBuilder.UNBOUNDED;
    for (SchemaLocation place : all(keyword)) {
      smallest = Math.min(smallest, place.count());
    }
    return smallest;
  }

  /** Refuses a pair of bounds that leave nothing. */
  void requireOrder(String lower, int min, String upper, int max) {
    SchemaLocation place = find(lower);
    if (place != null && min > max) {
      throw place.refused(
          "%s is %d but %s is %d; nothing is between.".formatted(lower, min, upper, max));
    }
  }

  /** The types named, or {@code null} if none are. */
  @Nullable Set<String> types() {
    Set<String> types = null;
    for (SchemaLocation place : all("type")) {
      Set<String> named = new LinkedHashSet<>();
      if (place.node().isArray()) {
        for (int i = 0; i < place.node().size(); i++) {
          named.add(type(place.child(i)));
        }
      } else {
        named.add(type(place));
      }
      types = types == null ? named : bothAllow(types, named);
    }
    return types;
  }

  private static Set<String> bothAllow(Set<String> some, Set<String> others) {
    Set<String> both = new LinkedHashSet<>();
    for (String type : some) {
      boolean integral = type.equals("integer") && others.contains("number");
      if (others.contains(type) || integral) {
        both.add(type);
      } else if (type.equals("number") && others.contains("integer")) {
        both.add("integer");
      }
    }
    return both;
  }

  private static String type(SchemaLocation place) {
    String type = place.text();
    return switch (type) {
      case "null", "boolean", "integer", "number", "string", "array", "object" -> type;
      default ->
          throw place.refused(
              "'%s' is no type; there are null, boolean, integer, number, string, array, object."
                  .formatted(type));
    };
  }
}
