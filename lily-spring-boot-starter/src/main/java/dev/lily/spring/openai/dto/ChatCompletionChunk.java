package dev.lily.spring.openai.dto;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A piece of an answer.
 *
 * @param object always {@code chat.completion.chunk}
 * @param created the same in all chunks of an answer
 * @param choices one element, or none in the chunk with the usage
 */
public record ChatCompletionChunk(
    String id,
    String object,
    long created,
    String model,
    List<Choice> choices,
    @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable Usage usage) {

  public static final String OBJECT = "chat.completion.chunk";

  /**
   * What a choice gained.
   *
   * @param finishReason {@code null} but in the choice's last chunk
   */
  public record Choice(
      int index, Delta delta, @Nullable Logprobs logprobs, @Nullable String finishReason) {}

  /** The gain; absent components are not written. */
  @JsonInclude(JsonInclude.Include.NON_NULL)
  public record Delta(
      @Nullable String role,
      @Nullable String content,
      @Nullable String reasoningContent,
      @Nullable List<ToolCall> toolCalls) {

    public static final Delta EMPTY = new Delta(null, null, null, null);

    /** The first delta of a choice. */
    public static final Delta ROLE = new Delta("assistant", "", null, null);

    public static Delta content(String text) {
      return new Delta(null, text, null, null);
    }

    public static Delta reasoning(String text) {
      return new Delta(null, null, text, null);
    }

    public static Delta toolCall(ToolCall call) {
      return new Delta(null, null, null, List.of(call));
    }
  }
}
