package dev.lily.spring.autoconfigure;

import dev.lily.spring.openai.OpenAiOptions;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;

/** Says so where {@code lily.openai.enabled} is true and nothing can serve the API. */
@AutoConfiguration(after = LilyOpenAiAutoConfiguration.class)
@ConditionalOnProperty(prefix = LilyOpenAiProperties.PREFIX, name = "enabled", havingValue = "true")
@ConditionalOnMissingBean(OpenAiOptions.class)
public final class LilyOpenAiAbsenceAutoConfiguration {
  LilyOpenAiAbsenceAutoConfiguration() {
    LoggerFactory.getLogger(LilyOpenAiAbsenceAutoConfiguration.class)
        .warn(
            "lily.openai.enabled is true, but the OpenAI-compatible API is NOT served: that takes a reactive web application. Add spring-boot-starter-webflux and, where Spring MVC is there too, set spring.main.web-application-type=reactive");
  }
}
