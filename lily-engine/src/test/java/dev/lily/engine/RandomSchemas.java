package dev.lily.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** Random JSON schemas of the supported subset, whose documents are short. */
final class RandomSchemas {
  private static final JsonMapper MAPPER = JsonMapper.builder().build();
  private static final List<String> NAMES =
      List.of("name", "id", "a", "städte", "x/y", "with space", "q\"t", "items", "kind", "when");
  private static final List<String> PATTERNS =
      List.of(
          "^[A-Z]{2}[0-9]{1,3}$",
          "^(red|green|blu?e)$",
          "^\\d{4}-\\d{2}$",
          "^[^\"\\\\]{1,4}$",
          "^(ab|a)(c|bcd)?$",
          "^\\w{1,9}@\\w{1,5}\\.de$",
          "^[äöü€😀]{1,3}$",
          "^\\S{1,6}$");

  /** Not email: the validator knows the registered top-level domains, which come and go. */
  private static final List<String> FORMATS =
      List.of("date", "time", "date-time", "uuid", "ipv4", "ipv6", "hostname", "duration", "uri");

  private final Random random;
  private final ObjectNode definitions = MAPPER.createObjectNode();

  private RandomSchemas(Random random) {
    this.random = random;
  }

  static JsonNode schema(long seed) {
    RandomSchemas schemas = new RandomSchemas(new Random(seed * 7919 + 17));
    ObjectNode root = schemas.any(3);
    if (!schemas.definitions.isEmpty()) {
      root.set("$defs", schemas.definitions);
    }
    return root;
  }

  private ObjectNode any(int depth) {
    return switch (random.nextInt(depth == 0 ? 6 : 12)) {
      case 0 -> string();
      case 1 -> number("integer");
      case 2 -> number("number");
      case 3 -> listed();
      case 4 -> MAPPER.createObjectNode().put("type", random.nextBoolean() ? "boolean" : "null");
      case 5 -> string();
      case 6, 7 -> array(depth);
      case 8, 9 -> object(depth);
      case 10 ->
          switch (random.nextInt(4)) {
            case 0 -> oneOf(depth);
            case 1 -> allOf();
            default -> anyOf(depth);
          };
      default -> reference(depth);
    };
  }

  private ObjectNode string() {
    ObjectNode schema = MAPPER.createObjectNode().put("type", "string");
    switch (random.nextInt(4)) {
      case 0 -> schema.put("pattern", PATTERNS.get(random.nextInt(PATTERNS.size())));
      case 1 -> schema.put("format", FORMATS.get(random.nextInt(FORMATS.size())));
      default -> {
        int min = random.nextInt(4);
        schema.put("minLength", min).put("maxLength", min + random.nextInt(12));
      }
    }
    return schema;
  }

  private ObjectNode number(String type) {
    ObjectNode schema = MAPPER.createObjectNode().put("type", type);
    double low = random.nextInt(2000) - 1000;
    if (type.equals("number") && random.nextBoolean()) {
      low += 0.25;
    }
    if (random.nextBoolean()) {
      schema.put(random.nextBoolean() ? "minimum" : "exclusiveMinimum", low);
    }
    if (random.nextBoolean()) {
      schema.put(
          random.nextBoolean() ? "maximum" : "exclusiveMaximum", low + 20 + random.nextInt(500));
    }
    // The validator divides doubles, so multiples have to be small enough for them.
    if (schema.size() == 3 && random.nextInt(2) == 0) {
      schema.put("multipleOf", type.equals("integer") ? 1 + random.nextInt(9) : 0.5);
    } else if (type.equals("integer") && random.nextInt(3) == 0) {
      schema.put("format", random.nextBoolean() ? "int32" : "int64");
    }
    return schema;
  }

  private ObjectNode listed() {
    ObjectNode schema = MAPPER.createObjectNode();
    if (random.nextInt(3) == 0) {
      return schema.put("const", "naïve \"quote\"\n😀");
    }
    ArrayNode values = schema.putArray("enum");
    values.add("零").add(1).add(12).add(true).addNull().add("a\\b");
    values.addObject().put("k", 1.5).putArray("l").add("x");
    while (values.size() > 1 + random.nextInt(6)) {
      values.remove(random.nextInt(values.size()));
    }
    return schema;
  }

  private ObjectNode array(int depth) {
    ObjectNode schema = MAPPER.createObjectNode().put("type", "array");
    schema.set("items", any(depth - 1));
    int min = random.nextInt(3);
    schema.put("minItems", min).put("maxItems", min + random.nextInt(3));
    if (random.nextInt(4) == 0) {
      schema.putArray("prefixItems").add(any(0)).add(any(0));
    }
    return schema;
  }

  private ObjectNode object(int depth) {
    ObjectNode schema = MAPPER.createObjectNode().put("type", "object");
    ObjectNode properties = schema.putObject("properties");
    List<String> required = new ArrayList<>();
    int count = random.nextInt(5);
    for (int i = 0; i < count; i++) {
      String name = NAMES.get(random.nextInt(NAMES.size()));
      properties.set(name, any(depth - 1));
      if (random.nextBoolean() && !required.contains(name)) {
        required.add(name);
      }
    }
    required.forEach(schema.putArray("required")::add);
    if (random.nextInt(5) == 0 && count > 0) {
      schema.set("additionalProperties", any(0));
      // A name of any length would let an answer at this temperature go on for ever.
      schema.putObject("propertyNames").put("maxLength", 16);
      schema.put("maxProperties", properties.size() + 1);
    } else {
      schema.put("additionalProperties", false);
    }
    return schema;
  }

  private ObjectNode anyOf(int depth) {
    ObjectNode schema = MAPPER.createObjectNode();
    ArrayNode branches = schema.putArray("anyOf");
    for (int i = 0; i < 2 + random.nextInt(2); i++) {
      branches.add(any(depth - 1));
    }
    return schema;
  }

  /** Branches of different types, because it must be plain that they exclude each other. */
  private ObjectNode oneOf(int depth) {
    ObjectNode schema = MAPPER.createObjectNode();
    ArrayNode branches = schema.putArray("oneOf");
    branches.add(string()).add(number("integer")).add(array(depth)).add(object(depth));
    while (branches.size() > 2 + random.nextInt(3)) {
      branches.remove(random.nextInt(branches.size()));
    }
    return schema;
  }

  private ObjectNode allOf() {
    ObjectNode schema = MAPPER.createObjectNode().put("type", "integer");
    int low = random.nextInt(100);
    ArrayNode parts = schema.putArray("allOf");
    parts.addObject().put("minimum", low);
    parts.addObject().put("maximum", low + random.nextInt(1000)).put("minimum", low - 5);
    return schema;
  }

  /** A reference to a definition, which may contain itself. */
  private ObjectNode reference(int depth) {
    String name = "d" + definitions.size();
    ObjectNode definition = MAPPER.createObjectNode();
    definitions.set(name, definition);
    if (random.nextBoolean()) {
      definition.setAll(any(depth - 1));
    } else {
      definition.put("type", "object").put("additionalProperties", false);
      ObjectNode properties = definition.putObject("properties");
      properties.set("v", any(0));
      ObjectNode next = properties.putObject("next");
      ArrayNode branches = next.putArray("anyOf");
      branches.addObject().put("type", "null");
      branches.addObject().put("$ref", "#/$defs/" + name);
      definition.putArray("required").add("v").add("next");
    }
    return MAPPER.createObjectNode().put("$ref", "#/$defs/" + name);
  }
}
