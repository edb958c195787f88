package dev.lily.spring.ai;

import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import java.util.List;
import java.util.Map;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.metadata.ChatGenerationMetadata;
import org.springframework.ai.chat.metadata.ChatResponseMetadata;
import org.springframework.ai.chat.metadata.DefaultUsage;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;

/**
 * Turns what the engine says into Spring AI's responses, for calls and for streams. The last chunk
 * of a stream is the whole response without its text, so that both ways end in the same metadata.
 */
final class ChatResponseMapper {

  /** Message metadata: the model's thought, whole so far. Never part of the text. */
  static final String REASONING = "reasoningContent";

  /** Generation metadata: what the model wrote of a tool call that the limit cut off. */
  static final String INCOMPLETE_TOOL_CALL = "incompleteToolCall";

  /** Generation metadata: the engine's {@code TokenLogprob}s of the whole answer. */
  static final String LOGPROBS = "logprobs";

  private final String modelName;

  ChatResponseMapper(String modelName) {
    this.modelName = modelName;
  }

  /** A whole answer. */
  ChatResponse response(String id, GenerationResult result) {
    return response(id, result, result.text());
  }

  /** The last chunk of a stream: tool calls, finish reason, usage and timings, but no text. */
  ChatResponse lastChunk(String id, GenerationResult result) {
    return response(id, result, "");
  }

  /**
   * A chunk before the last.
   *
   * @param text new answer text, possibly empty
   * @param reasoning all reasoning so far
   */
  ChatResponse chunk(String id, String text, String reasoning) {
    AssistantMessage message =
        AssistantMessage.builder().content(text).properties(properties(reasoning)).build();
    return new ChatResponse(
        List.of(new Generation(message, ChatGenerationMetadata.NULL)),
        ChatResponseMetadata.builder().id(id).model(modelName).build());
  }

  private ChatResponse response(String id, GenerationResult result, String text) {
    AssistantMessage message =
        AssistantMessage.builder()
            .content(text)
            .properties(properties(result.reasoning()))
            .toolCalls(result.toolCalls().stream().map(ChatResponseMapper::toolCall).toList())
            .build();
    ChatGenerationMetadata.Builder metadata =
        ChatGenerationMetadata.builder().finishReason(finishReason(result.finishReason()));
    if (!result.incompleteToolCall().isEmpty()) {
      metadata.metadata(INCOMPLETE_TOOL_CALL, result.incompleteToolCall());
    }
    if (!result.logprobs().isEmpty()) {
      metadata.metadata(LOGPROBS, result.logprobs());
    }
    Timings timings = result.timings();
    return new ChatResponse(
        List.of(new Generation(message, metadata.build())),
        ChatResponseMetadata.builder()
            .id(id)
            .model(modelName)
            .usage(usage(result.usage()))
            .keyValue("queuedTime", timings.queued())
            .keyValue("prefillTime", timings.prefill())
            .keyValue("timeToFirstToken", timings.firstToken())
            .keyValue("decodeTime", timings.decode())
            .build());
  }

  private static Map<String, Object> properties(String reasoning) {
    return reasoning.isEmpty() ? Map.of() : Map.of(REASONING, reasoning);
  }

  private static AssistantMessage.ToolCall toolCall(dev.lily.engine.chat.ToolCall call) {
    return new AssistantMessage.ToolCall(
        call.id(), "function", call.name(), call.arguments().toString());
  }

  private static String finishReason(FinishReason reason) {
    return switch (reason) {
      case STOP -> "stop";
      case LENGTH -> "length";
      case TOOL_CALLS -> "tool_calls";
      case CANCELLED -> "cancelled";
    };
  }

  private static DefaultUsage usage(Usage usage) {
    return new DefaultUsage(
        usage.promptTokens(),
        usage.completionTokens(),
        usage.totalTokens(),
        usage,
        (long) usage.cachedTokens(),
        null);
  }
}
