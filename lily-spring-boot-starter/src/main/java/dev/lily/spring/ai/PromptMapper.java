package dev.lily.spring.ai;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.ToolDefinition;
import dev.lily.engine.constraint.InvalidConstraintException;
import dev.lily.engine.constraint.OutputConstraint;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.InvalidRequestException;
import dev.lily.engine.sampling.InvalidSamplingException;
import dev.lily.engine.sampling.SamplingOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.messages.Message;
import org.springframework.ai.tool.ToolCallback;
import tools.jackson.databind.node.ObjectNode;

/** Turns a prompt with {@link LilyChatOptions} into an engine request. Thread-safe. */
final class PromptMapper {

  private final String modelName;

  /**
   * @param modelName the loaded model; a prompt may name it or none
   */
  PromptMapper(String modelName) {
    this.modelName = modelName;
  }

  /**
   * Maps a prompt.
   *
   * @throws InvalidRequestException naming the option or message that Lily cannot honour
   */
  GenerationRequest request(List<Message> messages, LilyChatOptions options) {
    checkModel(options.getModel());
    return GenerationRequest.builder(
            new Conversation(MessageMapper.map(messages), tools(options.getToolCallbacks())))
        .thinking(options.getThinking())
        .preserveThinking(Boolean.TRUE.equals(options.getPreserveThinking()))
        .sampling(sampling(options))
        .maxTokens(options.getMaxTokens())
        .minTokens(options.getMinTokens() == null ? 0 : options.getMinTokens())
        .stopStrings(
            options.getStopSequences() == null
                ? List.of()
                : options.getStopSequences().stream().distinct().toList())
        .topLogprobs(topLogprobs(options))
        .timeout(options.getTimeout())
        .output(output(options.getOutputSchema()))
        .build();
  }

  private void checkModel(@Nullable String asked) {
    if (asked != null && !asked.equals(modelName)) {
      throw new InvalidRequestException(
          "model",
          "The prompt asks for model '%s', but '%s' is loaded. Leave the model name out or give that one."
              .formatted(asked, modelName));
    }
  }

  private static @Nullable OutputConstraint output(@Nullable String schema) {
    if (schema == null) {
      return null;
    }
    try {
      return OutputConstraint.JsonSchema.parse(schema);
    } catch (InvalidConstraintException e) {
      throw new InvalidRequestException("outputSchema", String.valueOf(e.getMessage()), e);
    }
  }

  /** The sampling part of the options, validated. */
  static SamplingOptions sampling(LilyChatOptions options) {
    try {
      return SamplingOptions.builder()
          .temperature(options.getTemperature())
          .topK(options.getTopK())
          .topP(options.getTopP())
          .minP(options.getMinP())
          .presencePenalty(options.getPresencePenalty())
          .frequencyPenalty(options.getFrequencyPenalty())
          .repetitionPenalty(options.getRepetitionPenalty())
          .logitBias(options.getLogitBias())
          .seed(options.getSeed())
          .build();
    } catch (InvalidSamplingException e) {
      throw new InvalidRequestException(
          e.option(), e.getMessage() == null ? e.option() : e.getMessage(), e);
    }
  }

  private static @Nullable Integer topLogprobs(LilyChatOptions options) {
    Integer top = options.getTopLogprobs();
    if (Boolean.FALSE.equals(options.getLogprobs()) && top != null) {
      throw new InvalidRequestException(
          "topLogprobs",
          "topLogprobs is " + top + " while logprobs is false; set logprobs or leave both out");
    }
    if (Boolean.TRUE.equals(options.getLogprobs())) {
      return top == null ? 0 : top;
    }
    return top;
  }

  /** Definitions in the order given; the same one given twice is shown once. */
  private static List<ToolDefinition> tools(@Nullable List<ToolCallback> callbacks) {
    if (callbacks == null) {
      return List.of();
    }
    Map<String, org.springframework.ai.tool.definition.ToolDefinition> seen = new LinkedHashMap<>();
    List<ToolDefinition> tools = new ArrayList<>(callbacks.size());
    for (ToolCallback callback : callbacks) {
      org.springframework.ai.tool.definition.ToolDefinition definition =
          callback.getToolDefinition();
      var earlier = seen.putIfAbsent(definition.name(), definition);
      if (earlier == null) {
        String path = "tools[" + tools.size() + "].inputSchema";
        ObjectNode schema = MessageMapper.object(definition.inputSchema(), path);
        tools.add(ToolDefinition.of(definition.name(), definition.description(), schema));
      } else if (!earlier.equals(definition)) {
        throw new InvalidRequestException(
            "tools",
            "Two different tools are named '" + definition.name() + "'; names must be unique");
      }
    }
    return tools;
  }
}
