package dev.lily.engine.chat;

import tools.jackson.databind.node.ObjectNode;

/**
 * A tool as the model sees it: the whole JSON object is rendered in the key order given.
 *
 * @param json the OpenAI form {@code {"type":"function","function":{"name","description",
 *     "parameters"}}}
 */
public record ToolDefinition(ObjectNode json) {
  public ToolDefinition {
    if (!json.path("function").path("name").isString()) {
      throw new InvalidConversationException(
          "tools",
          "A tool has no function.name; it needs {\"type\":\"function\",\"function\":{…}}");
    }
  }

  /** Builds the OpenAI form. */
  public static ToolDefinition of(String name, String description, ObjectNode parameters) {
    ObjectNode json = parameters.objectNode();
    json.put("type", "function");
    ObjectNode function = json.putObject("function");
    function.put("name", name);
    function.put("description", description);
    function.set("parameters", parameters);
    return new ToolDefinition(json);
  }

  public String name() {
    return json.path("function").path("name").stringValue();
  }

  /** The JSON schema of the arguments; an empty object if the tool has none. */
  public ObjectNode parameters() {
    return json.path("function").path("parameters") instanceof ObjectNode parameters
        ? parameters
        : json.objectNode();
  }
}
