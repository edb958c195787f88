package dev.lily.spring.openai;

import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.generation.ToolChoice;
import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * How the model may use its tools.
 *
 * @param visible whether it sees them at all
 * @param parallel whether it may call more than one
 */
record ToolUse(boolean visible, ToolChoice choice, boolean parallel) {
  private static final String NAME = "tool_choice";

  /**
   * Reads {@code tool_choice} and {@code parallel_tool_calls}.
   *
   * @throws ApiException if the choice is wrong or not among the tools
   */
  static ToolUse read(FieldReader fields, List<ToolDefinition> tools) {
    boolean parallel = !Boolean.FALSE.equals(fields.bool("parallel_tool_calls"));
    JsonNode choice = fields.node(NAME);
    if (choice == null) {
      return new ToolUse(true, ToolChoice.AUTO, parallel);
    }
    if (choice.isObject()) {
      return new ToolUse(true, named(fields, tools), parallel);
    }
    String mode = choice.isString() ? choice.stringValue() : "";
    return switch (mode) {
      case "auto" -> new ToolUse(true, ToolChoice.AUTO, parallel);
      case "none" -> new ToolUse(false, ToolChoice.AUTO, true);
      case "required" -> {
        if (tools.isEmpty()) {
          throw ApiError.invalidValue(NAME, "tool_choice is \"required\", but there are no tools.")
              .exception();
        }
        yield new ToolUse(true, ToolChoice.REQUIRED, parallel);
      }
      default ->
          throw fields.wrongType(NAME, choice, "\"none\", \"auto\", \"required\" or an object");
    };
  }

  private static ToolChoice named(FieldReader fields, List<ToolDefinition> tools) {
    FieldReader choice = fields.object(NAME);
    if (!"function".equals(choice.string("type"))) {
      throw ApiError.unsupported(
              NAME,
              "A tool_choice of this type is not supported. Use \"none\", \"auto\", \"required\" or a"
                  + " function.")
          .exception();
    }
    String name = choice.object("function").string("name");
    if (name == null) {
      throw ApiError.invalidValue(NAME, "tool_choice.function.name is missing.").exception();
    }
    if (tools.stream().noneMatch(tool -> tool.name().equals(name))) {
      throw ApiError.invalidValue(
              NAME,
              "tool_choice names the function %s, which is not among the tools."
                  .formatted(Quote.of(name)))
          .exception();
    }
    return new ToolChoice.Named(name);
  }
}
