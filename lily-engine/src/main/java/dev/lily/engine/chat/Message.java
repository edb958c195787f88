package dev.lily.engine.chat;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** One message of a conversation. */
public sealed interface Message {
  /** What the message says; empty parts and no parts at all are fine. */
  List<ContentPart> content();

  /** A message of role {@code system}. Late ones are merged into the leading block, in order. */
  record Instructions(List<ContentPart> content) implements Message {
    public Instructions {
      content = List.copyOf(content);
    }

    public Instructions(String text) {
      this(List.of(new ContentPart.Text(text)));
    }
  }

  record User(List<ContentPart> content) implements Message {
    public User {
      content = List.copyOf(content);
    }

    public User(String text) {
      this(List.of(new ContentPart.Text(text)));
    }
  }

  /**
   * An earlier answer.
   *
   * @param reasoning the thought, or {@code null} if it may be part of the content in {@code
   *     <think>} tags
   */
  record Assistant(List<ContentPart> content, @Nullable String reasoning, List<ToolCall> toolCalls)
      implements Message {
    public Assistant {
      content = List.copyOf(content);
      toolCalls = List.copyOf(toolCalls);
    }

    public Assistant(String text) {
      this(List.of(new ContentPart.Text(text)), null, List.of());
    }
  }

  /** The result of a tool call; results answer the calls of the preceding message in order. */
  record ToolResult(List<ContentPart> content) implements Message {
    public ToolResult {
      content = List.copyOf(content);
    }

    public ToolResult(String text) {
      this(List.of(new ContentPart.Text(text)));
    }
  }
}
