package dev.lily.spring.autoconfigure;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.ai.CutAnswerAdvisor;
import dev.lily.spring.ai.LilyChatModel;
import io.micrometer.observation.ObservationRegistry;
import org.springframework.ai.chat.client.ChatClientBuilderCustomizer;
import org.springframework.ai.chat.observation.ChatModelObservationConvention;
import org.springframework.ai.model.SpringAIModelProperties;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/** Offers a {@link LilyChatModel} on the engine. */
@AutoConfiguration(
    after = LilyEngineAutoConfiguration.class,
    beforeName =
        "org.springframework.ai.model.chat.client.autoconfigure.ChatClientAutoConfiguration")
@ConditionalOnProperty(
    name = SpringAIModelProperties.CHAT_MODEL,
    havingValue = LilyChatModel.PROVIDER,
    matchIfMissing = true)
@ConditionalOnBean(LilyEngine.class)
@EnableConfigurationProperties(LilyProperties.class)
public final class LilyChatAutoConfiguration {

  @Bean
  @ConditionalOnMissingBean
  LilyChatModel lilyChatModel(
      LilyEngine engine,
      LilyProperties properties,
      ObjectProvider<ObservationRegistry> observations,
      ObjectProvider<ChatModelObservationConvention> convention,
      ObjectProvider<AnswerRecorder> recorder) {
    LilyChatModel model =
        LilyChatModel.builder(engine)
            .options(PropertyMapper.chatOptions(properties.chat()))
            .observationRegistry(observations.getIfUnique(() -> ObservationRegistry.NOOP))
            .recorder(recorder.getIfUnique(() -> AnswerRecorder.NONE))
            .build();
    convention.ifAvailable(model::setObservationConvention);
    return model;
  }

  /** Tells {@code entity(…)} of the application's clients why an answer is incomplete. */
  @Bean
  ChatClientBuilderCustomizer lilyCutAnswerCustomizer() {
    return builder -> builder.defaultAdvisors(new CutAnswerAdvisor());
  }
}
