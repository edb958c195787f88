package dev.lily.engine.chat;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * What a model is asked to continue.
 *
 * @param messages in order
 * @param tools shown to the model in this order; no two of a name
 */
public record Conversation(List<Message> messages, List<ToolDefinition> tools) {
  public Conversation {
    messages = List.copyOf(messages);
    tools = List.copyOf(tools);
    Set<String> names = new HashSet<>();
    for (int i = 0; i < tools.size(); i++) {
      if (!names.add(tools.get(i).name())) {
        throw new InvalidConversationException(
            "tools[%d].function.name".formatted(i),
            "Two tools are called \"%s\", so a call could mean either. Rename one."
                .formatted(tools.get(i).name()));
      }
    }
  }

  public static Conversation of(Message... messages) {
    return new Conversation(List.of(messages), List.of());
  }
}
