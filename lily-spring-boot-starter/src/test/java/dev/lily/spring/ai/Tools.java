package dev.lily.spring.ai;

import org.springframework.ai.tool.ToolCallback;
import org.springframework.ai.tool.definition.ToolDefinition;

/** Tools that exist only by their definition. */
final class Tools {

  private Tools() {}

  static ToolCallback tool(String name, String description, String inputSchema) {
    return new DefinedTool(
        ToolDefinition.builder()
            .name(name)
            .description(description)
            .inputSchema(inputSchema)
            .build());
  }

  private record DefinedTool(ToolDefinition definition) implements ToolCallback {
    @Override
    public ToolDefinition getToolDefinition() {
      return definition;
    }

    @Override
    public String call(String toolInput) {
      throw new AssertionError("A chat model must not run tools, but ran " + definition.name());
    }
  }
}
