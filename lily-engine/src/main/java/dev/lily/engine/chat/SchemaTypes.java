package dev.lily.engine.chat;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URLDecoder;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.SequencedSet;
import tools.jackson.core.JsonPointer;
import tools.jackson.databind.JsonNode;

/**
 * The types that a JSON schema allows a value, in the order the schema names them. Alternatives of
 * {@code anyOf}, {@code oneOf}, {@code allOf} and lists of types are all of them; references within
 * the schema are followed. A schema that names no type at all allows a string, unless its {@code
 * enum}, {@code const}, {@code properties} or {@code items} say more.
 */
final class SchemaTypes {
  enum Type {
    STRING,
    INTEGER,
    NUMBER,
    BOOLEAN,
    OBJECT,
    ARRAY,
    NULL,
    /** Not known here; any JSON will do. */
    OTHER
  }

  private static final int MAX_DEPTH = 16;
  private static final int MAX_SCHEMAS = 256;

  private final JsonNode root;
  private final SequencedSet<Type> types = new LinkedHashSet<>();
  private int visited;

  private SchemaTypes(JsonNode root) {
    this.root = root;
  }

  /**
   * Finds the types.
   *
   * @param root what references start from
   * @param schema of the value
   * @return at least one
   */
  static SequencedSet<Type> of(JsonNode root, JsonNode schema) {
    SchemaTypes found = new SchemaTypes(root);
    found.visit(schema, 0);
    if (found.types.isEmpty()) {
      found.types.add(Type.STRING);
    }
    return found.types;
  }

  private void visit(JsonNode schema, int depth) {
    if (depth > MAX_DEPTH || ++visited > MAX_SCHEMAS) {
      types.add(Type.OTHER);
      return;
    }
    JsonNode type = schema.path("type");
    if (type.isString()) {
      types.add(named(type.stringValue()));
    } else if (type.isArray()) {
      type.forEach(name -> types.add(named(name.asString(""))));
    } else if (schema.path("enum").isArray()) {
      schema.path("enum").forEach(value -> types.add(ofValue(value)));
    } else if (schema.has("const")) {
      types.add(ofValue(schema.path("const")));
    } else if (!visitOthers(schema, depth + 1)) {
      if (schema.has("properties")) {
        types.add(Type.OBJECT);
      } else if (schema.has("items")) {
        types.add(Type.ARRAY);
      } else {
        types.add(Type.STRING);
      }
    }
  }

  private boolean visitOthers(JsonNode schema, int depth) {
    boolean any = false;
    if (schema.path("$ref").isString()) {
      any = true;
      JsonNode target = resolve(schema.path("$ref").stringValue());
      if (target.isObject()) {
        visit(target, depth);
      } else {
        types.add(Type.OTHER);
      }
    }
    for (String keyword : new String[] {"anyOf", "oneOf", "allOf"}) {
      for (JsonNode alternative : schema.path(keyword)) {
        any = true;
        visit(alternative, depth);
      }
    }
    return any;
  }

  private JsonNode resolve(String reference) {
    if (!reference.startsWith("#")) {
      return root.path("");
    }
    try {
      String pointer = URLDecoder.decode(reference.substring(1).replace("+", "%2B"), UTF_8);
      return root.at(JsonPointer.compile(pointer));
    } catch (IllegalArgumentException _) {
      return root.path("");
    }
  }

  private static Type ofValue(JsonNode value) {
    return switch (value.getNodeType()) {
      case STRING -> Type.STRING;
      case NUMBER -> value.isIntegralNumber() ? Type.INTEGER : Type.NUMBER;
      case BOOLEAN -> Type.BOOLEAN;
      case OBJECT -> Type.OBJECT;
      case ARRAY -> Type.ARRAY;
      case NULL -> Type.NULL;
      case BINARY, MISSING, POJO -> Type.OTHER;
    };
  }

  private static Type named(String name) {
    String type = name.strip().toLowerCase(Locale.ROOT);
    return switch (type) {
      case "string", "str", "text", "varchar", "char", "enum" -> Type.STRING;
      case "boolean", "bool", "binary" -> Type.BOOLEAN;
      case "object" -> Type.OBJECT;
      case "array", "arr" -> Type.ARRAY;
      case "null", "none" -> Type.NULL;
      default -> byPrefix(type);
    };
  }

  private static Type byPrefix(String type) {
    if (startsWithAny(type, "int", "uint", "long", "short", "unsigned")) {
      return Type.INTEGER;
    }
    if (startsWithAny(type, "num", "float", "double")) {
      return Type.NUMBER;
    }
    if (type.startsWith("dict")) {
      return Type.OBJECT;
    }
    return type.startsWith("list") ? Type.ARRAY : Type.OTHER;
  }

  private static boolean startsWithAny(String text, String... prefixes) {
    for (String prefix : prefixes) {
      if (text.startsWith(prefix)) {
        return true;
      }
    }
    return false;
  }
}
