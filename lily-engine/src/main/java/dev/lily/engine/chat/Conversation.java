package dev.lily.engine.chat;

import java.util.List;

/**
 * What a model is asked to continue.
 *
 * @param messages in order
 * @param tools shown to the model in this order
 */
public record Conversation(List<Message> messages, List<ToolDefinition> tools) {
  public Conversation {
    messages = List.copyOf(messages);
    tools = List.copyOf(tools);
  }

  public static Conversation of(Message... messages) {
    return new Conversation(List.of(messages), List.of());
  }
}
