package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URLDecoder;
import java.util.ArrayDeque;
import java.util.Set;
import tools.jackson.core.JsonPointer;
import tools.jackson.databind.JsonNode;

/** A schema as a whole: its limits and its references. Nothing is ever fetched. */
final class SchemaDocument {
  /** Most JSON values in a schema. */
  static final int MAX_VALUES = 20_000;

  /** Deepest nesting of its JSON. */
  static final int MAX_DEPTH = 128;

  private static final int MAX_HOPS = 64;
  private static final Set<String> ANNOTATIONS =
      Set.of(
          "title",
          "description",
          "default",
          "example",
          "examples",
          "deprecated",
          "readOnly",
          "writeOnly",
          "contentEncoding",
          "contentMediaType",
          "$comment",
          "$schema",
          "$id",
          "$defs",
          "definitions",
          "externalDocs",
          "xml");

  private final JsonNode root;
  private final String path;

  /**
   * @param path JSON pointer of the schema in what the caller gave
   * @throws InvalidConstraintException if the schema is too large or nested too deeply
   */
  SchemaDocument(JsonNode root, String path) {
    this.root = root;
    this.path = path;
    checkSize(root, path);
  }

  private record Visit(JsonNode node, int depth) {}

  private static void checkSize(JsonNode root, String path) {
    ArrayDeque<Visit> pending = new ArrayDeque<>();
    pending.add(new Visit(root, 1));
    int values = 0;
    while (!pending.isEmpty()) {
      Visit visit = pending.removeLast();
      values++;
      if (values + pending.size() > MAX_VALUES) {
        throw new InvalidConstraintException(
            path,
            "The JSON schema has more than %,d values in it; make it smaller."
                .formatted(MAX_VALUES));
      }
      if (visit.depth() > MAX_DEPTH) {
        throw new InvalidConstraintException(
            path,
            "The JSON schema is nested more than %d deep; name parts of it in $defs."
                .formatted(MAX_DEPTH));
      }
      for (JsonNode child : visit.node()) {
        pending.add(new Visit(child, visit.depth() + 1));
      }
    }
  }

  SchemaLocation root() {
    return new SchemaLocation(root, path);
  }

  /** Whether a keyword says nothing about what is valid. */
  static boolean isAnnotation(String keyword) {
    return ANNOTATIONS.contains(keyword) || keyword.startsWith("x-");
  }

  /** Follows references as long as a schema is nothing but one. */
  SchemaLocation resolve(SchemaLocation schema) {
    SchemaLocation at = schema;
    for (int hops = 0; hops <= MAX_HOPS; hops++) {
      if (!isOnlyReference(at.node())) {
        return at;
      }
      at = target(at.child("$ref"));
    }
    throw schema
        .child("$ref")
        .refused("The reference leads through more than " + MAX_HOPS + " others or in a circle.");
  }

  private static boolean isOnlyReference(JsonNode schema) {
    if (!schema.has("$ref")) {
      return false;
    }
    for (String keyword : schema.propertyNames()) {
      if (!keyword.equals("$ref") && !isAnnotation(keyword)) {
        return false;
      }
    }
    return true;
  }

  /**
   * What a reference points to.
   *
   * @param reference at the keyword
   */
  SchemaLocation target(SchemaLocation reference) {
    String text = reference.text();
    if (!text.startsWith("#")) {
      throw reference.refused(
          "The reference '%s' leads out of the schema; nothing is fetched. Put its target in $defs."
              .formatted(text));
    }
    String pointer;
    JsonNode target;
    try {
      pointer = URLDecoder.decode(text.substring(1).replace("+", "%2B"), UTF_8);
      target = root.at(JsonPointer.compile(pointer));
    } catch (IllegalArgumentException _) {
      throw reference.refused(
          "The reference '%s' is no JSON pointer; write it as '#/$defs/NAME'.".formatted(text));
    }
    if (target.isMissingNode()) {
      throw reference.refused(
          "The reference '%s' points to nothing in this schema.".formatted(text));
    }
    return new SchemaLocation(target, path + pointer);
  }
}
