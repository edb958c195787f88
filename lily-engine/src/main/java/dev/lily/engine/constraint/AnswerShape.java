package dev.lily.engine.constraint;

import java.util.List;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * A whole answer of a chat model: reasoning, then what the caller reads, or calls of tools.
 * Compares by content.
 *
 * @param markup how the checkpoint marks the parts
 * @param reasoning whether the answer begins inside the reasoning
 * @param answer what the text must look like; {@code null} for any text
 * @param tools tools that may be called
 * @param calls whether calls have to be made
 * @param parallel whether there may be more than one call
 */
public record AnswerShape(
    Markup markup,
    boolean reasoning,
    @Nullable OutputConstraint answer,
    List<Tool> tools,
    Calls calls,
    boolean parallel) {

  /** Whether tools are called. */
  public enum Calls {
    /** Instead of the answer, or behind it where it is any text. */
    ALLOWED,
    /** Instead of the answer. */
    REQUIRED
  }

  /**
   * The marks of a checkpoint. Each is the bytes of its text, or the byte of a marker token of
   * {@link TokenVocabulary}, as a char below 256.
   */
  public record Markup(String callStart, String callEnd, String reasoningEnd) {}

  /**
   * A tool.
   *
   * @param parameters JSON schema of its arguments
   * @param path JSON pointer of that schema in the request
   */
  public record Tool(String name, JsonNode parameters, String path) {}

  public AnswerShape {
    tools = List.copyOf(tools);
  }

  /**
   * Compiles the shape.
   *
   * @throws InvalidConstraintException if a schema is wrong, contradicts itself or is not in the
   *     subset
   */
  public Grammar compile() {
    return AnswerCompiler.compile(this);
  }
}
