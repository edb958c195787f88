package dev.lily.spring.openai.dto;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A whole answer.
 *
 * @param object always {@code chat.completion}
 * @param created seconds since the epoch
 */
public record ChatCompletion(
    String id, String object, long created, String model, List<Choice> choices, Usage usage) {

  public static final String OBJECT = "chat.completion";

  public record Choice(
      int index, Message message, @Nullable Logprobs logprobs, String finishReason) {}

  /**
   * The message.
   *
   * @param content the answer's text; {@code null} if there are only tool calls
   * @param refusal always {@code null}
   */
  public record Message(
      String role,
      @Nullable String content,
      @Nullable String refusal,
      @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable String reasoningContent,
      @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable List<ToolCall> toolCalls) {}
}
