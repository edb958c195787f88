package dev.lily.spring.openai;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** JSON for tests, in which single quotes may stand for double ones. */
final class Json {
  private static final JsonMapper MAPPER = JsonMapper.shared();

  private Json() {}

  static ObjectNode object(String text) {
    return (ObjectNode) read(text.replace('\'', '"'));
  }

  static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  static JsonNode read(String text) {
    return MAPPER.readTree(text);
  }

  /** What a value is on the wire. */
  static JsonNode wire(Object value) {
    return read(WireJson.text(value));
  }
}
