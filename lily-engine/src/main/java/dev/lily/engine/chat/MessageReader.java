package dev.lily.engine.chat;

import java.util.List;
import tools.jackson.databind.JsonNode;

/**
 * Reads messages in the JSON form that chat templates and the OpenAI API share: {@code role},
 * {@code content} (string, null or parts), {@code reasoning_content}, {@code tool_calls}. Role
 * {@code developer} is read as {@code system}.
 */
public final class MessageReader {
  private MessageReader() {}

  /**
   * Reads messages.
   *
   * @param messages a JSON array
   * @throws InvalidConversationException with the path of the offending element, for example {@code
   *     messages[1].content[0].type}
   */
  public static List<Message> readMessages(JsonNode messages) {
    throw new UnsupportedOperationException(messages.toString());
  }

  /**
   * Reads tool definitions.
   *
   * @param tools a JSON array in OpenAI form, or null
   * @throws InvalidConversationException with the path of the offending element
   */
  public static List<ToolDefinition> readTools(JsonNode tools) {
    throw new UnsupportedOperationException(tools.toString());
  }
}
