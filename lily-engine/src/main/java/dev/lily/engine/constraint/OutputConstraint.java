package dev.lily.engine.constraint;

import java.util.List;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * What an answer must look like. The values compare by content, so equal constraints share one
 * compiled form.
 */
public sealed interface OutputConstraint {
  /** Longest text of a constraint, in chars. */
  int MAX_TEXT_LENGTH = 256 * 1024;

  /**
   * A JSON value that a schema accepts.
   *
   * @param schema draft 2020-12, the subset of {@code docs/structured-output.md}; an object or a
   *     boolean. Handed over: it must not change any more
   */
  record JsonSchema(JsonNode schema) implements OutputConstraint {
    private static final JsonMapper MAPPER = JsonMapper.builder().build();

    /**
     * Reads a schema.
     *
     * @throws InvalidConstraintException if the text is no JSON, too long or nested too deeply
     */
    public static JsonSchema parse(String text) {
      if (text.length() > MAX_TEXT_LENGTH) {
        throw new InvalidConstraintException(
            "",
            "The JSON schema has %,d chars; at most %,d are allowed. Make it smaller."
                .formatted(text.length(), MAX_TEXT_LENGTH));
      }
      try {
        return new JsonSchema(MAPPER.readTree(text));
      } catch (JacksonException e) {
        throw new InvalidConstraintException(
            "", "The JSON schema is no JSON that can be read: " + e.getOriginalMessage(), e);
      }
    }
  }

  /** A JSON object with any content. */
  record JsonObject() implements OutputConstraint {}

  /**
   * A text that a regular expression matches as a whole.
   *
   * @param pattern in the safe subset of {@code docs/structured-output.md}
   */
  record Regex(String pattern) implements OutputConstraint {}

  /**
   * One of several texts.
   *
   * @param choices at least one; an empty text is allowed
   */
  record Choice(List<String> choices) implements OutputConstraint {
    public Choice {
      choices = List.copyOf(choices);
    }
  }
}
