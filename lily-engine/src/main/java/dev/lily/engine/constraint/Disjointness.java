package dev.lily.engine.constraint;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * Shows that no value satisfies two branches of a {@code oneOf}, which can then be written like an
 * {@code anyOf}: by their types, by the values they list, by a property that tells them apart, or
 * by one that only one of them allows.
 */
final class Disjointness {
  private static final int MAX_DEPTH = 4;

  private final SchemaDocument document;
  private final Assertions.Budget budget;

  Disjointness(SchemaDocument document, Assertions.Budget budget) {
    this.document = document;
    this.budget = budget;
  }

  /**
   * @throws InvalidConstraintException if two branches may both accept a value
   */
  void require(SchemaLocation choice, List<Assertions> branches) {
    for (int i = 0; i < branches.size(); i++) {
      for (int j = i + 1; j < branches.size(); j++) {
        if (!areDisjoint(branches.get(i), branches.get(j), 0)) {
          throw choice.refused(
              ("Branches %d and %d may both accept a value, so that oneOf would reject it. Use anyOf,"
                      + " or give each a required property with another const.")
                  .formatted(i, j));
        }
      }
    }
  }

  private boolean areDisjoint(Assertions a, Assertions b, int depth) {
    if (a.impossible() || b.impossible()) {
      return true;
    }
    Set<JsonNode> valuesOfA = values(a);
    Set<JsonNode> valuesOfB = values(b);
    if (valuesOfA != null && valuesOfB != null) {
      return valuesOfA.stream().noneMatch(valuesOfB::contains);
    }
    Set<String> typesOfA = types(a, valuesOfA);
    Set<String> typesOfB = types(b, valuesOfB);
    if (typesOfA == null || typesOfB == null) {
      return false;
    }
    Set<String> common = new HashSet<>(typesOfA);
    common.retainAll(typesOfB);
    boolean integral =
        (typesOfA.contains("integer") && typesOfB.contains("number"))
            || (typesOfB.contains("integer") && typesOfA.contains("number"));
    if (common.isEmpty() && !integral) {
      return true;
    }
    return common.equals(Set.of("object"))
        && !integral
        && depth < MAX_DEPTH
        && (isToldApart(a, b, depth) || isToldApart(b, a, depth));
  }

  /** Whether a required property of the first is impossible, or another, in the second. */
  private boolean isToldApart(Assertions a, Assertions b, int depth) {
    Map<String, SchemaLocation> ofA = properties(a);
    Map<String, SchemaLocation> ofB = properties(b);
    for (SchemaLocation place : a.all("required")) {
      for (JsonNode name : place.node()) {
        String property = name.asString("");
        SchemaLocation inA = ofA.get(property);
        SchemaLocation inB = ofB.get(property);
        if (inB == null) {
          SchemaLocation additional = b.find("additionalProperties");
          if (additional != null
              && additional.node().isBoolean()
              && !additional.node().booleanValue()) {
            return true;
          }
        } else if (inA != null && areDisjoint(of(inA), of(inB), depth + 1)) {
          return true;
        }
      }
    }
    return false;
  }

  private Assertions of(SchemaLocation schema) {
    Assertions assertions = new Assertions(document, budget);
    assertions.add(document.resolve(schema));
    return assertions;
  }

  private static Map<String, SchemaLocation> properties(Assertions assertions) {
    Map<String, SchemaLocation> properties = new LinkedHashMap<>();
    for (SchemaLocation place : assertions.all("properties")) {
      for (String name : place.node().propertyNames()) {
        properties.put(name, place.child(name));
      }
    }
    return properties;
  }

  private static @Nullable Set<JsonNode> values(Assertions assertions) {
    Set<JsonNode> values = null;
    for (SchemaLocation place : assertions.all("const")) {
      values = new HashSet<>(Set.of(place.node()));
    }
    for (SchemaLocation place : assertions.all("enum")) {
      if (values == null) {
        values = new HashSet<>();
        place.node().forEach(values::add);
      }
    }
    return values;
  }

  private static @Nullable Set<String> types(
      Assertions assertions, @Nullable Set<JsonNode> values) {
    Set<String> types = assertions.types();
    if (types != null || values == null) {
      return types;
    }
    Set<String> found = new HashSet<>();
    for (String type : List.of("null", "boolean", "number", "string", "array", "object")) {
      if (values.stream().anyMatch(value -> SchemaCompiler.hasType(value, Set.of(type)))) {
        found.add(type);
      }
    }
    return found;
  }
}
