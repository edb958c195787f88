package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.StringNode;

/**
 * Objects. Declared properties come in the order of their declaration, the optional ones or not;
 * others behind them. Without {@code additionalProperties} an object has its declared properties
 * only, unless none are declared.
 */
final class ObjectRules {
  private final GrammarBuilder grammar;
  private final JsonRules json;
  private final SchemaCompiler schemas;

  private record Property(String name, int rule, boolean required) {}

  ObjectRules(GrammarBuilder grammar, JsonRules json, SchemaCompiler schemas) {
    this.grammar = grammar;
    this.json = json;
    this.schemas = schemas;
  }

  /** Adds objects, as a rule of their own because they may count. */
  void emit(Assertions assertions, SchemaLocation schema, int from, int to) {
    Map<String, SchemaLocation> declared = declared(assertions);
    Set<String> required = required(assertions);
    SchemaLocation additional = assertions.find("additionalProperties");
    boolean open = additional == null ? declared.isEmpty() : !isFalse(additional);
    List<Property> properties = new ArrayList<>();
    for (Map.Entry<String, SchemaLocation> entry : declared.entrySet()) {
      properties.add(
          new Property(
              entry.getKey(), schemas.rule(entry.getValue()), required.remove(entry.getKey())));
    }
    for (String name : required) {
      if (additional != null && !open) {
        throw assertions
            .all("required")
            .getFirst()
            .refused("'%s' is required, but no property of that name is allowed.".formatted(name));
      }
      properties.add(new Property(name, additionalRule(additional), true));
    }
    int min = assertions.largestCount("minProperties");
    int max = assertions.smallestCount("maxProperties");
    assertions.requireOrder("minProperties", min, "maxProperties", max);
    requireSizes(assertions, properties, open, min, max);
    Integer others = open ? additionalRule(additional) : null;
    OtherNames names = new OtherNames(grammar, json, schemas, assertions, schema);
    names.requireAllowed(properties.stream().map(Property::name).toList());
    grammar.call(from, rule(properties, others, min, max, names), to);
  }

  private static boolean isFalse(SchemaLocation schema) {
    return schema.node().isBoolean() && !schema.node().booleanValue();
  }

  private int additionalRule(@Nullable SchemaLocation additional) {
    return additional == null ? json.value() : schemas.rule(additional);
  }

  /** Declared properties by name, in the order of their declaration. */
  static Map<String, SchemaLocation> declared(Assertions assertions) {
    Map<String, SchemaLocation> declared = new LinkedHashMap<>();
    for (SchemaLocation place : assertions.all("properties")) {
      if (!place.node().isObject()) {
        throw place.refused("the value must be an object of schemas.");
      }
      for (String name : place.node().propertyNames()) {
        SchemaLocation property = place.child(name);
        SchemaLocation earlier = declared.putIfAbsent(name, property);
        if (earlier != null && !earlier.node().equals(property.node())) {
          throw property.refused(
              "The property is declared here and, differently, at %s; declare it once."
                  .formatted(earlier.path()));
        }
      }
    }
    List<SchemaLocation> places = assertions.all("properties");
    SchemaLocation additional = assertions.find("additionalProperties");
    if (additional != null && places.size() > 1) {
      throw additional.refused(
          "additionalProperties cannot be combined with properties of several parts of a schema;"
              + " declare all properties in one place.");
    }
    if (declared.size() > Matcher.MAX_READINGS / 2) {
      throw places
          .getFirst()
          .refused(
              "%d properties; at most %d are supported."
                  .formatted(declared.size(), Matcher.MAX_READINGS / 2));
    }
    return declared;
  }

  /** Names of required properties. */
  static Set<String> required(Assertions assertions) {
    Set<String> required = new LinkedHashSet<>();
    for (SchemaLocation place : assertions.all("required")) {
      if (!place.node().isArray()) {
        throw place.refused("the value must be an array of names.");
      }
      for (int i = 0; i < place.node().size(); i++) {
        required.add(place.child(i).text());
      }
    }
    return required;
  }

  private static void requireSizes(
      Assertions assertions, List<Property> properties, boolean open, int min, int max) {
    long required = properties.stream().filter(Property::required).count();
    SchemaLocation most = assertions.find("maxProperties");
    if (most != null && required > max) {
      throw most.refused("maxProperties is %d, but %d are required.".formatted(max, required));
    }
    SchemaLocation least = assertions.find("minProperties");
    boolean atLeastOne = open && properties.isEmpty() && min == 1;
    if (least != null && min > required && !atLeastOne) {
      // Names may repeat, so a number of members would not be a number of properties.
      throw least.refused(
          "minProperties can ask for no more than the required properties, or for 1 where none are"
              + " declared. Declare properties and make them required.");
    }
  }

  private int rule(
      List<Property> properties, @Nullable Integer others, int min, int max, OtherNames names) {
    boolean counts = min > 0 || max != GrammarBuilder.UNBOUNDED;
    int count = properties.size();
    int start = grammar.node();
    int end = grammar.endNode();
    int[] first = new int[count + 1];
    int[] next = new int[count + 1];
    int[] behind = new int[count + 1];
    int[] requiredFrom = new int[count + 2];
    for (int i = count; i >= 0; i--) {
      requiredFrom[i] = requiredFrom[i + 1] + (i < count && properties.get(i).required() ? 1 : 0);
      int most = max == GrammarBuilder.UNBOUNDED ? max : max - requiredFrom[i + 1];
      first[i] = grammar.node(min, most);
      next[i] = grammar.node(min, most);
      behind[i] = grammar.node(min, max);
      if (requiredFrom[i] == 0) {
        grammar.bytes(behind[i], '}', '}', end, counts ? Grammar.AT_LEAST_MIN : 0);
      }
      int comma = grammar.node(min, max);
      grammar.bytes(behind[i], ',', ',', comma, counts ? Grammar.BELOW_MAX : 0);
      grammar.bytes(comma, ' ', ' ', next[i]);
      grammar.epsilon(comma, next[i]);
      if (i < count) {
        Property property = properties.get(i);
        int key = property(property, behind[i + 1]);
        int flags = !counts ? 0 : Grammar.RAISE | (property.required() ? 0 : Grammar.BELOW_MAX);
        grammar.epsilon(first[i], key, flags);
        grammar.epsilon(next[i], key, flags);
        if (!property.required()) {
          grammar.epsilon(first[i], first[i + 1]);
          grammar.epsilon(next[i], next[i + 1]);
        }
      }
    }
    grammar.bytes(start, '{', '{', first[0]);
    if (count > 0 || min == 0) {
      grammar.bytes(first[count], '}', '}', end);
    }
    if (others != null) {
      int key = names.rule(properties.stream().map(Property::name).toList());
      int flags = counts ? Grammar.RAISE | Grammar.BELOW_MAX : 0;
      for (int from : new int[] {first[count], next[count]}) {
        int colon = grammar.node();
        grammar.call(from, key, colon, flags);
        grammar.call(json.afterSeparator(colon, ':', 0), others, behind[count]);
      }
    }
    return start;
  }

  private int property(Property property, int behind) {
    int key = grammar.node();
    int colon = grammar.literal(key, encoded(property.name()));
    grammar.call(json.afterSeparator(colon, ':', 0), property.rule(), behind);
    return key;
  }

  private static byte[] encoded(String name) {
    return StringNode.valueOf(name).toString().getBytes(UTF_8);
  }
}
