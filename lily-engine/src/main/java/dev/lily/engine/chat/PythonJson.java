package dev.lily.engine.chat;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/**
 * JSON text as Python's {@code json.dumps(value, ensure_ascii=False)} writes it after {@code
 * json.loads}: separators {@code ", "} and {@code ": "}, keys in insertion order, nothing escaped
 * but quotes, backslashes and control characters, integers of any size in full, other numbers as
 * the shortest text of the nearest double in Python's notation ({@code 1e+20}, {@code 10.0}). A
 * {@code BigDecimal} node has no negative zero, so {@code -0.0} read as one is {@code 0.0}.
 */
final class PythonJson {
  /** As deep as Jackson parses by default; deeper trees can only be built by hand. */
  static final int MAX_DEPTH = 500;

  private static final String HEX = "0123456789abcdef";

  private final String path;
  private final StringBuilder out = new StringBuilder();

  private PythonJson(String path) {
    this.path = path;
  }

  /**
   * Writes a tree.
   *
   * @param path names the tree in errors, for example {@code tools[2]}
   * @throws InvalidConversationException if the tree is nested deeper than {@link #MAX_DEPTH} or
   *     holds a node that has no JSON form
   */
  static String write(JsonNode node, String path) {
    PythonJson json = new PythonJson(path);
    json.value(node, 0);
    return json.out.toString();
  }

  private void value(JsonNode node, int depth) {
    if (depth > MAX_DEPTH) {
      throw new InvalidConversationException(
          path,
          "The JSON of %s is nested deeper than %d levels. Send a flatter value."
              .formatted(path, MAX_DEPTH));
    }
    switch (node.getNodeType()) {
      case OBJECT -> object(node, depth);
      case ARRAY -> array(node, depth);
      case STRING -> string(node.stringValue());
      case NUMBER -> number(node);
      case BOOLEAN -> out.append(node.booleanValue());
      case NULL -> out.append("null");
      case BINARY, MISSING, POJO ->
          throw new InvalidConversationException(
              path,
              "The JSON of %s holds a %s node, which no JSON text has. Use JSON values only."
                  .formatted(path, node.getNodeType().name().toLowerCase(Locale.ROOT)));
    }
  }

  private void object(JsonNode node, int depth) {
    out.append('{');
    String separator = "";
    for (Map.Entry<String, JsonNode> property : node.properties()) {
      out.append(separator);
      string(property.getKey());
      out.append(": ");
      value(property.getValue(), depth + 1);
      separator = ", ";
    }
    out.append('}');
  }

  private void array(JsonNode node, int depth) {
    out.append('[');
    String separator = "";
    for (JsonNode element : node) {
      out.append(separator);
      value(element, depth + 1);
      separator = ", ";
    }
    out.append(']');
  }

  private void string(String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      switch (c) {
        case '"' -> out.append("\\\"");
        case '\\' -> out.append("\\\\");
        case '\n' -> out.append("\\n");
        case '\r' -> out.append("\\r");
        case '\t' -> out.append("\\t");
        case '\b' -> out.append("\\b");
        case '\f' -> out.append("\\f");
        default -> {
          if (c < ' ') {
            out.append("\\u00").append(HEX.charAt(c >> 4)).append(HEX.charAt(c & 15));
          } else {
            out.append(c);
          }
        }
      }
    }
    out.append('"');
  }

  private void number(JsonNode node) {
    if (node.isIntegralNumber()) {
      out.append(node.bigIntegerValue());
    } else if (node.isBigDecimal()) {
      out.append(repr(node.decimalValue().doubleValue()));
    } else {
      // A float node stands for the short text it prints, not for the double it widens to.
      out.append(repr(Double.parseDouble(node.numberValue().toString())));
    }
  }

  /** {@code json.dumps(value)} of a Python float. */
  static String repr(double value) {
    if (Double.isNaN(value)) {
      return "NaN";
    }
    String sign = value < 0 || (value == 0 && 1 / value < 0) ? "-" : "";
    if (Double.isInfinite(value)) {
      return sign + "Infinity";
    }
    if (value == 0) {
      return sign + "0.0";
    }
    BigDecimal shortest = shortest(Math.abs(value));
    String digits = shortest.unscaledValue().toString();
    int point = digits.length() - shortest.scale();
    if (point < -3 || point > 16) {
      return sign + scientific(digits, point - 1);
    }
    if (point <= 0) {
      return sign + "0." + "0".repeat(-point) + digits;
    }
    if (point >= digits.length()) {
      return sign + digits + "0".repeat(point - digits.length()) + ".0";
    }
    return sign + digits.substring(0, point) + "." + digits.substring(point);
  }

  /**
   * The shortest decimal that reads back as the value. {@code Double.toString} gives two digits
   * where one would do if two are nearer, as in 4.9E-324; Python gives one.
   */
  private static BigDecimal shortest(double value) {
    BigDecimal decimal = new BigDecimal(Double.toString(value)).stripTrailingZeros();
    if (decimal.precision() == 2) {
      BigDecimal oneDigit =
          decimal.setScale(decimal.scale() - 1, RoundingMode.HALF_EVEN).stripTrailingZeros();
      if (oneDigit.doubleValue() == value) {
        return oneDigit;
      }
    }
    return decimal;
  }

  private static String scientific(String digits, int exponent) {
    String mantissa = digits.length() == 1 ? digits : digits.charAt(0) + "." + digits.substring(1);
    int magnitude = Math.abs(exponent);
    return mantissa + (exponent < 0 ? "e-" : "e+") + (magnitude < 10 ? "0" : "") + magnitude;
  }
}
