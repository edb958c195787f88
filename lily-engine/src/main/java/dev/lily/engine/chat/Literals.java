package dev.lily.engine.chat;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Optional;
import java.util.regex.Pattern;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;

/** Reads values as models write them: JSON, Python's literals, and numbers in either's form. */
final class Literals {
  private static final JsonMapper JSON = JsonMapper.builder().build();
  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
  private static final int MAX_NUMBER_LENGTH = 1000;
  private static final int MAX_DIGITS = 1000;
  private static final Pattern NUMBER =
      Pattern.compile("[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?");

  private static final Pattern JSON_NUMBER =
      Pattern.compile("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?");

  private Literals() {}

  /** Whether a text is a number as JSON spells it, so without leading zeros. */
  static boolean isJsonNumber(String text) {
    return JSON_NUMBER.matcher(text).matches();
  }

  /** Reads JSON, or else a Python literal. */
  static Optional<JsonNode> read(String text) {
    try {
      JsonNode node = JSON.readTree(text);
      return node.isMissingNode() ? Optional.empty() : Optional.of(node);
    } catch (JacksonException _) {
      return PythonLiteralReader.read(text);
    }
  }

  /** Reads an integer in any notation; all its digits are kept. */
  static Optional<JsonNode> readInteger(String text) {
    return decimal(text).filter(Literals::isIntegral).map(d -> integer(d.toBigIntegerExact()));
  }

  /** Reads a number; an integral one becomes an integer. */
  static Optional<JsonNode> readNumber(String text) {
    return decimal(text).map(Literals::number);
  }

  private static Optional<BigDecimal> decimal(String text) {
    if (text.length() > MAX_NUMBER_LENGTH || !NUMBER.matcher(text).matches()) {
      return Optional.empty();
    }
    BigDecimal value = new BigDecimal(text);
    long integerDigits = (long) value.precision() - value.scale();
    return integerDigits > MAX_DIGITS || value.scale() > 2 * MAX_DIGITS
        ? Optional.empty()
        : Optional.of(value);
  }

  private static boolean isIntegral(BigDecimal value) {
    return value.signum() == 0 || value.stripTrailingZeros().scale() <= 0;
  }

  private static JsonNode number(BigDecimal value) {
    if (isIntegral(value) && (value.scale() >= 0 || value.precision() - value.scale() < 19)) {
      return integer(value.toBigIntegerExact());
    }
    double nearest = value.doubleValue();
    boolean exact =
        !Double.isInfinite(nearest) && BigDecimal.valueOf(nearest).compareTo(value) == 0;
    return exact ? NODES.numberNode(nearest) : NODES.numberNode(value);
  }

  private static JsonNode integer(BigInteger value) {
    if (value.bitLength() < Integer.SIZE) {
      return NODES.numberNode(value.intValueExact());
    }
    return value.bitLength() < Long.SIZE
        ? NODES.numberNode(value.longValueExact())
        : NODES.numberNode(value);
  }
}
