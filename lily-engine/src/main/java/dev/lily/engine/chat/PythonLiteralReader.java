package dev.lily.engine.chat;

import java.util.Optional;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/**
 * Reads a Python literal: dictionaries, lists, tuples, strings in either quotes, numbers, {@code
 * True}, {@code False}, {@code None} and JSON's words for them. Linear in the text; deeper nesting
 * than {@link #MAX_DEPTH} is refused.
 */
final class PythonLiteralReader {
  static final int MAX_DEPTH = 100;

  private static final JsonNodeFactory NODES = JsonNodeFactory.instance;

  private final String text;
  private int at;

  private PythonLiteralReader(String text) {
    this.text = text;
  }

  /** Reads a text that is one literal and nothing else. */
  static Optional<JsonNode> read(String text) {
    PythonLiteralReader reader = new PythonLiteralReader(text);
    try {
      JsonNode value = reader.value(0);
      reader.skipSpace();
      return reader.at == text.length() ? Optional.of(value) : Optional.empty();
    } catch (NotALiteralException _) {
      return Optional.empty();
    }
  }

  private JsonNode value(int depth) throws NotALiteralException {
    if (depth > MAX_DEPTH) {
      throw new NotALiteralException();
    }
    skipSpace();
    return switch (peek()) {
      case '{' -> dictionary(depth);
      case '[' -> list(']', depth);
      case '(' -> list(')', depth);
      case '\'', '"' -> NODES.stringNode(string());
      default -> word();
    };
  }

  private ObjectNode dictionary(int depth) throws NotALiteralException {
    ObjectNode object = NODES.objectNode();
    at++;
    skipSpace();
    while (peek() != '}') {
      boolean quoted = peek() == '"' || peek() == '\'';
      String key = quoted ? string() : word().toString();
      skipSpace();
      expect(':');
      object.set(key, value(depth + 1));
      skipComma('}');
    }
    at++;
    return object;
  }

  private ArrayNode list(char end, int depth) throws NotALiteralException {
    ArrayNode array = NODES.arrayNode();
    at++;
    skipSpace();
    while (peek() != end) {
      array.add(value(depth + 1));
      skipComma(end);
    }
    at++;
    return array;
  }

  private void skipComma(char end) throws NotALiteralException {
    skipSpace();
    if (peek() != end) {
      expect(',');
      skipSpace();
    }
  }

  private String string() throws NotALiteralException {
    char quote = text.charAt(at++);
    StringBuilder value = new StringBuilder();
    while (peek() != quote) {
      char c = text.charAt(at++);
      if (c == '\\') {
        escape(value);
      } else {
        value.append(c);
      }
    }
    at++;
    return value.toString();
  }

  private void escape(StringBuilder value) throws NotALiteralException {
    char c = peek();
    at++;
    switch (c) {
      case 'n' -> value.append('\n');
      case 't' -> value.append('\t');
      case 'r' -> value.append('\r');
      case 'b' -> value.append('\b');
      case 'f' -> value.append('\f');
      case '\\', '\'', '"', '/' -> value.append(c);
      case '\n' -> {}
      case 'x' -> value.appendCodePoint(codePoint(2));
      case 'u' -> value.appendCodePoint(codePoint(4));
      case 'U' -> value.appendCodePoint(codePoint(8));
      default -> value.append('\\').append(c);
    }
  }

  private int codePoint(int digits) throws NotALiteralException {
    long value = 0;
    for (int i = 0; i < digits; i++) {
      int digit = Character.digit(peek(), 16);
      if (digit < 0) {
        throw new NotALiteralException();
      }
      value = value * 16 + digit;
      at++;
    }
    if (value > Character.MAX_CODE_POINT) {
      throw new NotALiteralException();
    }
    return (int) value;
  }

  private JsonNode word() throws NotALiteralException {
    int start = at;
    while (at < text.length() && isWordPart(text.charAt(at))) {
      at++;
    }
    String word = text.substring(start, at);
    return switch (word) {
      case "True", "true" -> NODES.booleanNode(true);
      case "False", "false" -> NODES.booleanNode(false);
      case "None", "null" -> NODES.nullNode();
      default -> Literals.readNumber(word).orElseThrow(NotALiteralException::new);
    };
  }

  private static boolean isWordPart(char c) {
    return (c >= '0' && c <= '9')
        || (c >= 'a' && c <= 'z')
        || (c >= 'A' && c <= 'Z')
        || c == '.'
        || c == '+'
        || c == '-';
  }

  private char peek() throws NotALiteralException {
    if (at == text.length()) {
      throw new NotALiteralException();
    }
    return text.charAt(at);
  }

  private void expect(char c) throws NotALiteralException {
    if (peek() != c) {
      throw new NotALiteralException();
    }
    at++;
  }

  private void skipSpace() {
    while (at < text.length() && TagLexer.isSpace(text.charAt(at))) {
      at++;
    }
  }

  private static final class NotALiteralException extends Exception {
    private static final long serialVersionUID = 1L;

    NotALiteralException() {
      super(null, null, false, false);
    }
  }
}
