package dev.lily.spring.autoconfigure;

import dev.lily.engine.LilyEngine;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;

/**
 * Opens the model of {@code lily.model} while the context starts, so that a wrong setting ends the
 * start. Off if nothing needs it: {@code spring.ai.model.chat} names another provider or {@code
 * none}, and the OpenAI endpoint is off.
 */
@AutoConfiguration
@Conditional(EngineNeededCondition.class)
@EnableConfigurationProperties(LilyProperties.class)
public final class LilyEngineAutoConfiguration {

  @Bean
  @ConditionalOnMissingBean
  LilyEngine lilyEngine(LilyProperties properties) {
    return LilyEngine.open(PropertyMapper.engineOptions(properties));
  }

  @Bean
  @ConditionalOnMissingBean
  LilyEngineLifecycle lilyEngineLifecycle(
      LilyEngine engine, LilyProperties properties, ApplicationContext context) {
    return new LilyEngineLifecycle(engine, PropertyMapper.shutdownGrace(properties), context);
  }
}
