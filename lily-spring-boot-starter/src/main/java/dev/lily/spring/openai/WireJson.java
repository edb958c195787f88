package dev.lily.spring.openai;

import java.nio.charset.StandardCharsets;
import tools.jackson.core.JacksonException;
import tools.jackson.core.exc.StreamConstraintsException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.json.JsonMapper;

/** JSON as it travels. Thread-safe. */
final class WireJson {
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .disable(MapperFeature.SORT_PROPERTIES_ALPHABETICALLY)
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .build();

  private WireJson() {}

  /**
   * Reads a request's body.
   *
   * @throws ApiException if it is not JSON, or nested deeper than Jackson allows
   */
  static JsonNode read(byte[] body) {
    if (body.length == 0) {
      throw ApiError.invalidBody("The body is empty; it must be a JSON object.").exception();
    }
    try {
      return MAPPER.readTree(body);
    } catch (StreamConstraintsException e) {
      throw ApiError.invalidBody(
              "The body is nested too deep, or holds too long a number or key. Send a simpler one.")
          .exception();
    } catch (JacksonException e) {
      throw ApiError.invalidBody(
              "The body is not valid JSON at line %d, column %d."
                  .formatted(e.getLocation().getLineNr(), e.getLocation().getColumnNr()))
          .exception();
    }
  }

  static String text(Object value) {
    return MAPPER.writeValueAsString(value);
  }

  /**
   * By way of a string, because a message may quote half of a surrogate pair, on which Jackson's
   * writer of bytes fails.
   */
  static byte[] bytes(Object value) {
    return text(value).getBytes(StandardCharsets.UTF_8);
  }
}
