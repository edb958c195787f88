package dev.lily.spring.openai;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * Reads the fields of a JSON object by type. An absent field and one that is {@code null} are the
 * same. One of another type is refused with its path; nothing is converted.
 */
final class FieldReader {
  private final ObjectNode object;
  private final String prefix;
  private final Set<String> read = new HashSet<>();

  private FieldReader(ObjectNode object, String prefix) {
    this.object = object;
    this.prefix = prefix;
  }

  /**
   * Reads a request's body.
   *
   * @throws ApiException if it is not an object
   */
  static FieldReader of(JsonNode body) {
    if (body instanceof ObjectNode object) {
      return new FieldReader(object, "");
    }
    throw ApiError.invalidBody("The body is %s; it must be a JSON object.".formatted(kind(body)))
        .exception();
  }

  /**
   * Reads an object within a request.
   *
   * @param path where it is
   * @throws ApiException if it is not an object
   */
  static FieldReader of(JsonNode element, String path) {
    if (element instanceof ObjectNode object) {
      return new FieldReader(object, path + ".");
    }
    throw ApiError.invalid(
            path,
            "%s is %s; it must be an object.".formatted(path, describe(element)),
            "invalid_type")
        .exception();
  }

  @Nullable JsonNode node(String name) {
    read.add(name);
    JsonNode value = object.get(name);
    return value == null || value.isNull() ? null : value;
  }

  boolean has(String name) {
    return node(name) != null;
  }

  @Nullable Boolean bool(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return null;
    }
    if (!value.isBoolean()) {
      throw wrongType(name, value, "true or false");
    }
    return value.booleanValue();
  }

  boolean isTrue(String name) {
    return Boolean.TRUE.equals(bool(name));
  }

  @Nullable Integer integer(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return null;
    }
    if (!value.isIntegralNumber()) {
      throw wrongType(name, value, "an integer");
    }
    if (!value.canConvertToInt()) {
      throw ApiError.invalidValue(
              prefix + name,
              "%s is %s; it must be an integer from %d to %d."
                  .formatted(prefix + name, number(value), Integer.MIN_VALUE, Integer.MAX_VALUE))
          .exception();
    }
    return value.intValue();
  }

  @Nullable Long longInteger(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return null;
    }
    if (!value.isIntegralNumber()) {
      throw wrongType(name, value, "an integer");
    }
    if (!value.canConvertToLong()) {
      throw ApiError.invalidValue(
              prefix + name,
              "%s is %s; it must be an integer from %d to %d."
                  .formatted(prefix + name, number(value), Long.MIN_VALUE, Long.MAX_VALUE))
          .exception();
    }
    return value.longValue();
  }

  @Nullable Double decimal(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return null;
    }
    if (!value.isNumber()) {
      throw wrongType(name, value, "a number");
    }
    return value.doubleValue();
  }

  @Nullable String string(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return null;
    }
    if (!value.isString()) {
      throw wrongType(name, value, "a string");
    }
    return value.stringValue();
  }

  /** A string, or an array of strings; {@code null} if absent. */
  @Nullable List<String> strings(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return null;
    }
    if (value.isString()) {
      return List.of(value.stringValue());
    }
    if (!value.isArray()) {
      throw wrongType(name, value, "a string or an array of strings");
    }
    List<String> read = new ArrayList<>(value.size());
    for (JsonNode element : value) {
      if (!element.isString()) {
        throw wrongType(name + "[" + read.size() + "]", element, "a string");
      }
      read.add(element.stringValue());
    }
    return read;
  }

  /** The fields of a nested object; those of an empty one if absent. */
  FieldReader object(String name) {
    JsonNode value = node(name);
    if (value == null) {
      return new FieldReader(object.objectNode(), prefix + name + ".");
    }
    if (!(value instanceof ObjectNode nested)) {
      throw wrongType(name, value, "an object");
    }
    return new FieldReader(nested, prefix + name + ".");
  }

  Iterable<Map.Entry<String, JsonNode>> entries() {
    return object.properties();
  }

  /** Fields that are there and that nobody has asked for, in their order. */
  List<String> unread() {
    List<String> unread = new ArrayList<>();
    for (String name : object.propertyNames()) {
      if (!read.contains(name) && !object.get(name).isNull()) {
        unread.add(name);
      }
    }
    return unread;
  }

  /** The path of this object, as errors name it; empty for a whole request. */
  String path() {
    return prefix.isEmpty() ? "" : prefix.substring(0, prefix.length() - 1);
  }

  /** The path of a field, as errors name it. */
  String path(String name) {
    return prefix + name;
  }

  ApiException wrongType(String name, JsonNode value, String rule) {
    return ApiError.invalid(
            prefix + name,
            "%s is %s; it must be %s.".formatted(prefix + name, describe(value), rule),
            "invalid_type")
        .exception();
  }

  private static String describe(JsonNode value) {
    return switch (value.getNodeType()) {
      case STRING -> Quote.of(value.stringValue());
      case NUMBER -> number(value);
      case BOOLEAN -> String.valueOf(value.booleanValue());
      default -> kind(value);
    };
  }

  /** A number's text, which may have hundreds of digits. */
  private static String number(JsonNode value) {
    String text = value.asString();
    return text.length() <= 40 ? text : "a number of " + text.length() + " digits";
  }

  private static String kind(JsonNode value) {
    return switch (value.getNodeType()) {
      case ARRAY -> "an array";
      case OBJECT -> "an object";
      case STRING -> "a string";
      case NUMBER -> "a number";
      case BOOLEAN -> "a boolean";
      case NULL -> "null";
      case MISSING, BINARY, POJO -> "empty";
    };
  }
}
