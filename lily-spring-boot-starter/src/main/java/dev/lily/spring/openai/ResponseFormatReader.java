package dev.lily.spring.openai;

import dev.lily.engine.constraint.OutputConstraint;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** Reads {@code response_format}. A schema is always enforced, whatever {@code strict} says. */
final class ResponseFormatReader {
  private static final String NAME = "response_format";

  private ResponseFormatReader() {}

  /**
   * What the answer must look like; {@code null} for any text.
   *
   * @throws ApiException if the format is wrong or unknown
   */
  static @Nullable OutputConstraint read(FieldReader fields) {
    FieldReader format = fields.object(NAME);
    if (!fields.has(NAME)) {
      return null;
    }
    String type = format.string("type");
    return switch (type) {
      case null ->
          throw ApiError.invalidValue(
                  "response_format.type",
                  "response_format.type is missing; it must be \"text\", \"json_object\" or"
                      + " \"json_schema\".")
              .exception();
      case "text" -> null;
      case "json_object" -> new OutputConstraint.JsonObject();
      case "json_schema" -> schema(format.object("json_schema"));
      default ->
          throw ApiError.unsupported(
                  NAME,
                  "response_format of type %s is not supported; use \"text\", \"json_object\" or \"json_schema\"."
                      .formatted(Quote.of(type)))
              .exception();
    };
  }

  private static OutputConstraint schema(FieldReader format) {
    format.bool("strict");
    JsonNode schema = format.node("schema");
    if (schema == null || !(schema.isObject() || schema.isBoolean())) {
      throw ApiError.invalidValue(
              format.path("schema"),
              format.path("schema") + " is missing or no schema; send a JSON schema.")
          .exception();
    }
    return new OutputConstraint.JsonSchema(schema);
  }
}
