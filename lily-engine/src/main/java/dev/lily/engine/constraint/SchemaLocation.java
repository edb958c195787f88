package dev.lily.engine.constraint;

import tools.jackson.databind.JsonNode;

/**
 * A place in a schema.
 *
 * @param path JSON pointer
 */
record SchemaLocation(JsonNode node, String path) {
  SchemaLocation child(String name) {
    return new SchemaLocation(
        node.path(name), path + "/" + name.replace("~", "~0").replace("/", "~1"));
  }

  SchemaLocation child(int index) {
    return new SchemaLocation(node.path(index), path + "/" + index);
  }

  InvalidConstraintException refused(String message) {
    return new InvalidConstraintException(path, message);
  }

  /** A non-negative number of characters, items or properties. */
  int count() {
    if (!node.isIntegralNumber() || node.bigIntegerValue().signum() < 0) {
      throw refused("the value is " + shown() + "; it must be an integer of at least 0.");
    }
    if (node.bigIntegerValue().bitLength() > 24) {
      throw refused("the value is " + shown() + "; at most 16,777,215 is supported.");
    }
    return node.intValue();
  }

  String text() {
    if (!node.isString()) {
      throw refused("the value is " + shown() + "; it must be a string.");
    }
    return node.stringValue();
  }

  /** The value for a message, not at length. */
  String shown() {
    if (node.isContainer()) {
      return node.isArray() ? "an array" : "an object";
    }
    String text = node.toString();
    return text.length() <= 60 ? text : text.substring(0, 60) + "…";
  }
}
