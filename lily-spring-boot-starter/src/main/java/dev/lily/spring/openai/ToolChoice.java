package dev.lily.spring.openai;

import dev.lily.engine.chat.ToolDefinition;
import java.util.List;
import tools.jackson.databind.JsonNode;

/** How the model may use its tools. */
enum ToolChoice {
  /** As it likes. */
  AUTO,
  /** Not at all: it does not even see them. */
  NONE;

  private static final String NAME = "tool_choice";

  /**
   * Reads {@code tool_choice}.
   *
   * @throws ApiException if the model would have to be forced, which is not available yet
   */
  static ToolChoice read(FieldReader fields, List<ToolDefinition> tools) {
    JsonNode choice = fields.node(NAME);
    if (choice == null) {
      return AUTO;
    }
    if (choice.isObject()) {
      throw refuseNamed(fields, tools);
    }
    String mode = choice.isString() ? choice.stringValue() : "";
    return switch (mode) {
      case "auto" -> AUTO;
      case "none" -> NONE;
      case "required" ->
          throw tools.isEmpty()
              ? ApiError.invalidValue(NAME, "tool_choice is \"required\", but there are no tools.")
                  .exception()
              : notAvailable("tool_choice \"required\"");
      default ->
          throw fields.wrongType(NAME, choice, "\"none\", \"auto\", \"required\" or an object");
    };
  }

  private static ApiException refuseNamed(FieldReader fields, List<ToolDefinition> tools) {
    FieldReader choice = fields.object(NAME);
    if (!"function".equals(choice.string("type"))) {
      return notAvailable("A tool_choice of this type");
    }
    String name = choice.object("function").string("name");
    if (name == null) {
      return ApiError.invalidValue(NAME, "tool_choice.function.name is missing.").exception();
    }
    if (tools.stream().noneMatch(tool -> tool.name().equals(name))) {
      return ApiError.invalidValue(
              NAME,
              "tool_choice names the function %s, which is not among the tools."
                  .formatted(Quote.of(name)))
          .exception();
    }
    return notAvailable("A tool_choice that names a function");
  }

  private static ApiException notAvailable(String what) {
    return ApiError.unsupported(
            NAME, what + " is not available yet. Use \"auto\" or \"none\", or ask in a message.")
        .exception();
  }
}
