package dev.lily.spring.ai;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.model.tool.DefaultToolCallingChatOptions;
import org.springframework.ai.model.tool.StructuredOutputChatOptions;
import org.springframework.ai.model.tool.ToolCallingChatOptions;
import org.springframework.util.CollectionUtils;

/** What {@link OverflowOptions#portable} gives. */
final class PortableOptions implements OverflowOptions {
  private static final Logger log = LoggerFactory.getLogger(PortableOptions.class);

  /** A portable option need not be one that the other model knows. */
  private static final Map<String, Function<ChatOptions, @Nullable Object>> PORTABLE =
      Map.of(
          "frequencyPenalty", ChatOptions::getFrequencyPenalty,
          "maxTokens", ChatOptions::getMaxTokens,
          "presencePenalty", ChatOptions::getPresencePenalty,
          "stopSequences", ChatOptions::getStopSequences,
          "temperature", ChatOptions::getTemperature,
          "topK", ChatOptions::getTopK,
          "topP", ChatOptions::getTopP);

  private static final Map<String, Function<LilyChatOptions, @Nullable Object>> LILYS_OWN =
      lilysOwn();

  private final LilyChatOptions defaults;
  private final ChatModel other;

  PortableOptions(LilyChatOptions defaults, ChatModel other) {
    this.defaults = defaults;
    this.other = other;
  }

  private static Map<String, Function<LilyChatOptions, @Nullable Object>> lilysOwn() {
    Map<String, Function<LilyChatOptions, @Nullable Object>> own = new LinkedHashMap<>();
    own.put("minP", LilyChatOptions::getMinP);
    own.put("repetitionPenalty", LilyChatOptions::getRepetitionPenalty);
    own.put("logitBias", LilyChatOptions::getLogitBias);
    own.put("seed", LilyChatOptions::getSeed);
    own.put("minTokens", LilyChatOptions::getMinTokens);
    own.put("logprobs", LilyChatOptions::getLogprobs);
    own.put("topLogprobs", LilyChatOptions::getTopLogprobs);
    own.put("thinking", LilyChatOptions::getThinking);
    own.put("preserveThinking", LilyChatOptions::getPreserveThinking);
    own.put("timeout", LilyChatOptions::getTimeout);
    return own;
  }

  @Override
  public @Nullable ChatOptions of(LilyChatOptions asked) {
    ChatOptions said = said(asked);
    List<String> lost = lost(asked, said);
    if (lost.isEmpty()) {
      return said;
    }
    log.debug("The request stays: the other chat model cannot honour its {}", lost);
    return null;
  }

  private ChatOptions said(LilyChatOptions asked) {
    ChatOptions.Builder<?> builder = other.getOptions().mutate();
    builder.combineWith(portable(asked).mutate());
    if (asked.getOutputSchema() != null
        && builder instanceof StructuredOutputChatOptions.Builder<?> structured) {
      structured.outputSchema(asked.getOutputSchema());
    }
    return builder.build();
  }

  private ToolCallingChatOptions portable(LilyChatOptions asked) {
    String model = asked.getModel();
    return DefaultToolCallingChatOptions.builder()
        .model(model != null && model.equals(defaults.getModel()) ? null : model)
        .frequencyPenalty(asked.getFrequencyPenalty())
        .maxTokens(asked.getMaxTokens())
        .presencePenalty(asked.getPresencePenalty())
        .stopSequences(asked.getStopSequences())
        .temperature(asked.getTemperature())
        .topK(asked.getTopK())
        .topP(asked.getTopP())
        .toolCallbacks(asked.getToolCallbacks())
        .toolContext(asked.getToolContext())
        .build();
  }

  private List<String> lost(LilyChatOptions asked, ChatOptions said) {
    List<String> lost = new ArrayList<>();
    PORTABLE.forEach(
        (name, option) -> {
          Object value = option.apply(asked);
          if (isSaid(value, option.apply(defaults)) && !value.equals(option.apply(said))) {
            lost.add(name);
          }
        });
    LILYS_OWN.forEach(
        (name, option) -> {
          if (isSaid(option.apply(asked), option.apply(defaults))) {
            lost.add(name);
          }
        });
    if (!CollectionUtils.isEmpty(asked.getToolCallbacks())
        && !(said instanceof ToolCallingChatOptions)) {
      lost.add("toolCallbacks");
    }
    if (asked.getOutputSchema() != null && !(said instanceof StructuredOutputChatOptions)) {
      lost.add("outputSchema");
    }
    return lost;
  }

  private static boolean isSaid(@Nullable Object value, @Nullable Object byDefault) {
    return value != null && !value.equals(byDefault);
  }
}
