package dev.lily.engine.chat;

import java.util.Optional;
import java.util.SequencedSet;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Gives the texts of a call's arguments the types that the tool's schema declares.
 *
 * <p>A string is the text, unchanged. Otherwise the allowed types are tried in the order of the
 * schema, on the text without surrounding whitespace: integers in any notation with all digits,
 * numbers (integral ones become integers), {@code true} and {@code false} in any case, objects and
 * arrays as JSON or as Python literals, even when they were encoded as a string. Where a string is
 * allowed too, only what JSON calls a number becomes one, so that leading zeros stay. The words
 * {@code null} and {@code None} are null if null is allowed or a string is not. What no type takes
 * stays the text it was, for the tool to reject.
 */
final class ArgumentTyper {
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private final ObjectNode schema;
  private final JsonNode properties;

  /**
   * @param schema of all arguments
   */
  ArgumentTyper(ObjectNode schema) {
    this.schema = schema;
    this.properties = schema.path("properties");
  }

  boolean declares(String parameter) {
    return properties.has(parameter);
  }

  boolean declaresAny() {
    return !properties.isEmpty();
  }

  /** Whether every required argument is there. */
  boolean hasRequired(ObjectNode arguments) {
    for (JsonNode required : schema.path("required")) {
      if (required.isString() && !arguments.has(required.stringValue())) {
        return false;
      }
    }
    return true;
  }

  /** Types one argument. */
  JsonNode type(String parameter, String text) {
    SequencedSet<SchemaTypes.Type> types = SchemaTypes.of(schema, properties.path(parameter));
    String trimmed = text.strip();
    if (isNull(trimmed)
        && (types.contains(SchemaTypes.Type.NULL) || !types.contains(SchemaTypes.Type.STRING))) {
      return NODES.nullNode();
    }
    boolean asWritten = types.contains(SchemaTypes.Type.STRING) && !Literals.isJsonNumber(trimmed);
    for (SchemaTypes.Type type : types) {
      if (asWritten && (type == SchemaTypes.Type.INTEGER || type == SchemaTypes.Type.NUMBER)) {
        continue;
      }
      Optional<JsonNode> value =
          type == SchemaTypes.Type.STRING
              ? Optional.of(NODES.stringNode(text))
              : convert(trimmed, type);
      if (value.isPresent()) {
        return value.get();
      }
    }
    return NODES.stringNode(text);
  }

  private static boolean isNull(String text) {
    return text.equalsIgnoreCase("null") || text.equals("None");
  }

  private static Optional<JsonNode> convert(String text, SchemaTypes.Type type) {
    return switch (type) {
      case STRING, NULL -> Optional.empty();
      case INTEGER -> Literals.readInteger(text);
      case NUMBER -> Literals.readNumber(text);
      case BOOLEAN -> readBoolean(text);
      case OBJECT -> readEncoded(text).filter(JsonNode::isObject);
      case ARRAY -> readEncoded(text).filter(JsonNode::isArray);
      case OTHER -> Literals.read(text);
    };
  }

  private static Optional<JsonNode> readBoolean(String text) {
    boolean yes = text.equalsIgnoreCase("true");
    return yes || text.equalsIgnoreCase("false")
        ? Optional.of(NODES.booleanNode(yes))
        : Optional.empty();
  }

  /** Reads a literal, or the literal that a string literal contains. */
  private static Optional<JsonNode> readEncoded(String text) {
    return Literals.read(text)
        .flatMap(node -> node.isString() ? Literals.read(node.stringValue()) : Optional.of(node));
  }
}
