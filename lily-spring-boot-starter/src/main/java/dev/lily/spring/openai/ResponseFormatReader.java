package dev.lily.spring.openai;

import dev.lily.engine.constraint.OutputConstraint;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * Reads {@code response_format}, or {@code text.format} of a response. A schema is always enforced,
 * whatever {@code strict} says.
 */
final class ResponseFormatReader {

  private ResponseFormatReader() {}

  /**
   * What the answer of a chat completion must look like; {@code null} for any text.
   *
   * @throws ApiException if the format is wrong or unknown
   */
  static @Nullable OutputConstraint ofChat(FieldReader fields) {
    FieldReader format = fields.object("response_format");
    return fields.has("response_format")
        ? read("response_format", format, format.object("json_schema"))
        : null;
  }

  /** The same for a response, whose schema lies beside the type. */
  static @Nullable OutputConstraint ofResponse(FieldReader fields) {
    FieldReader text = fields.object("text");
    FieldReader format = text.object("format");
    return text.has("format") ? read("text.format", format, format) : null;
  }

  private static @Nullable OutputConstraint read(
      String name, FieldReader format, FieldReader schema) {
    String type = format.string("type");
    return switch (type) {
      case null ->
          throw ApiError.invalidValue(
                  format.path("type"),
                  format.path("type")
                      + " is missing; it must be \"text\", \"json_object\" or \"json_schema\".")
              .exception();
      case "text" -> null;
      case "json_object" -> new OutputConstraint.JsonObject();
      case "json_schema" -> schema(schema);
      default ->
          throw ApiError.unsupported(
                  name,
                  "%s of type %s is not supported; use \"text\", \"json_object\" or \"json_schema\"."
                      .formatted(name, Quote.of(type)))
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
