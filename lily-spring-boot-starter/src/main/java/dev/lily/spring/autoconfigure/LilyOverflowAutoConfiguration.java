package dev.lily.spring.autoconfigure;

import dev.lily.spring.OverflowReason;
import dev.lily.spring.OverflowRecorder;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.OverflowChatModel;
import dev.lily.spring.ai.OverflowPolicy;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.NoSuchBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Primary;

/**
 * Offers an {@link OverflowChatModel} if {@code lily.overflow.enabled} is true. It is the primary
 * chat model, so that a {@code ChatClient.Builder} uses it.
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

  @Bean
  @Primary
  @ConditionalOnMissingBean
  OverflowChatModel lilyOverflowChatModel(
      LilyChatModel local,
      LilyOverflowProperties properties,
      BeanFactory beans,
      ObjectProvider<OverflowPolicy> policies,
      ObjectProvider<OverflowRecorder> recorder) {
    Set<OverflowReason> reasons = EnumSet.noneOf(OverflowReason.class);
    if (properties.whenBusy()) {
      reasons.add(OverflowReason.BUSY);
    }
    if (properties.whenTooLong()) {
      reasons.add(OverflowReason.CONTEXT);
    }
    return new OverflowChatModel(
        local,
        other(properties, beans, local),
        String.valueOf(properties.model()),
        reasons,
        policies.orderedStream().toList(),
        recorder.getIfUnique(() -> OverflowRecorder.NONE));
  }

  private static ChatModel other(
      LilyOverflowProperties properties, BeanFactory beans, LilyChatModel local) {
    String name = properties.model();
    if (name == null || name.isBlank()) {
      throw invalid(name, "it must be the bean name of another chat model");
    }
    try {
      ChatModel other = beans.getBean(name, ChatModel.class);
      if (local.equals(other)) {
        throw invalid(name, "it is Lily's own model; it must be another one");
      }
      return other;
    } catch (NoSuchBeanDefinitionException e) {
      throw invalid(name, "there is no chat model with this bean name");
    }
  }

  private static InvalidConfigurationPropertyValueException invalid(
      @Nullable String value, String reason) {
    return new InvalidConfigurationPropertyValueException(
        LilyOverflowProperties.PREFIX + ".model", value, reason);
  }
}
