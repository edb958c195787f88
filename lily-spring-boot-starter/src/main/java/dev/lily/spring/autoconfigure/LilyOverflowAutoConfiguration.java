package dev.lily.spring.autoconfigure;

import dev.lily.spring.OverflowReason;
import dev.lily.spring.OverflowRecorder;
import dev.lily.spring.RequestOverflow;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.Overflow;
import dev.lily.spring.ai.OverflowChatModel;
import dev.lily.spring.ai.OverflowOptions;
import dev.lily.spring.ai.OverflowPolicy;
import dev.lily.spring.ai.OverflowingRequests;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Primary;

/**
 * Lets another chat model answer what Lily cannot, if {@code lily.overflow.enabled} is true. The
 * {@link OverflowChatModel} is then the primary chat model, so that it is the one which clients
 * get.
 */
@AutoConfiguration(
    after = LilyChatAutoConfiguration.class,
    beforeName =
        "org.springframework.ai.model.chat.client.autoconfigure.ChatClientAutoConfiguration")
@ConditionalOnProperty(
    prefix = LilyOverflowProperties.PREFIX,
    name = "enabled",
    havingValue = "true")
@ConditionalOnBean(LilyChatModel.class)
@EnableConfigurationProperties(LilyOverflowProperties.class)
public final class LilyOverflowAutoConfiguration {
  private static final Logger log = LoggerFactory.getLogger(LilyOverflowAutoConfiguration.class);

  @Bean
  @ConditionalOnMissingBean
  Overflow lilyOverflow(
      LilyChatModel local,
      LilyOverflowProperties properties,
      ListableBeanFactory beans,
      ObjectProvider<OverflowPolicy> policies,
      ObjectProvider<OverflowOptions> options,
      ObjectProvider<OverflowRecorder> recorder) {
    OverflowTarget target = OverflowTarget.find(properties.model(), beans);
    Set<OverflowReason> reasons = reasons(properties);
    List<OverflowPolicy> present = policies.orderedStream().toList();
    log.info(
        "Requests overflow to chat model '{}'; queue-full: {}, prompt-too-long: {}, policies: {}",
        target.name(),
        properties.whenQueueFull(),
        properties.whenPromptTooLong(),
        present.size());
    return Overflow.builder(local.getOptions(), target.model(), target.name())
        .reasons(reasons)
        .policies(present)
        .options(options.getIfUnique())
        .recorder(recorder.getIfUnique(() -> OverflowRecorder.NONE))
        .build();
  }

  @Bean
  @Primary
  @ConditionalOnMissingBean
  OverflowChatModel lilyOverflowChatModel(
      LilyChatModel local, Overflow overflow, ConfigurableListableBeanFactory beans) {
    refuseAnotherPrimaryModel(beans);
    return new OverflowChatModel(local, overflow);
  }

  /** For the OpenAI endpoint, which asks the engine and no chat model. */
  @Bean
  @ConditionalOnMissingBean(RequestOverflow.class)
  OverflowingRequests lilyRequestOverflow(Overflow overflow) {
    return new OverflowingRequests(overflow);
  }

  /** With two of them, the first to inject a chat model would fail without saying why. */
  private static void refuseAnotherPrimaryModel(ConfigurableListableBeanFactory beans) {
    for (String name : beans.getBeanNamesForType(ChatModel.class)) {
      if (!beans.isTypeMatch(name, OverflowChatModel.class)
          && beans.containsBeanDefinition(name)
          && beans.getMergedBeanDefinition(name).isPrimary()) {
        throw new InvalidConfigurationPropertyValueException(
            LilyOverflowProperties.PREFIX + ".enabled",
            true,
            "chat model bean '%s' is @Primary, but with overflow that is the model which overflows. Remove @Primary, or switch overflow off."
                .formatted(name));
      }
    }
  }

  private static Set<OverflowReason> reasons(LilyOverflowProperties properties) {
    Set<OverflowReason> reasons = EnumSet.noneOf(OverflowReason.class);
    if (properties.whenQueueFull()) {
      reasons.add(OverflowReason.QUEUE_FULL);
    }
    if (properties.whenPromptTooLong()) {
      reasons.add(OverflowReason.PROMPT_TOO_LONG);
    }
    return reasons;
  }
}
