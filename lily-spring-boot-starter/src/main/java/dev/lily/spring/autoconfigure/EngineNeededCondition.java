package dev.lily.spring.autoconfigure;

import dev.lily.spring.ai.LilyChatModel;
import org.springframework.ai.model.SpringAIModelProperties;
import org.springframework.boot.autoconfigure.condition.AnyNestedCondition;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;

/** Matches where something runs on the engine: the chat model, the OpenAI endpoint, or both. */
final class EngineNeededCondition extends AnyNestedCondition {

  EngineNeededCondition() {
    super(ConfigurationPhase.PARSE_CONFIGURATION);
  }

  @ConditionalOnProperty(
      name = SpringAIModelProperties.CHAT_MODEL,
      havingValue = LilyChatModel.PROVIDER,
      matchIfMissing = true)
  static final class ChatModelChosen {}

  @ConditionalOnProperty(
      prefix = LilyOpenAiProperties.PREFIX,
      name = "enabled",
      havingValue = "true")
  @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
  static final class EndpointEnabled {}
}
