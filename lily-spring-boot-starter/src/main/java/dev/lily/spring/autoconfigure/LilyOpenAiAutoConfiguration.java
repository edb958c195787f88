package dev.lily.spring.autoconfigure;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.openai.OpenAiEndpoint;
import dev.lily.spring.openai.OpenAiOptions;
import java.net.InetAddress;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.ServerResponse;

/**
 * Serves the OpenAI-compatible API in a reactive web application, if {@code lily.openai.enabled} is
 * true. Needs an engine: a context without one does not start.
 */
@AutoConfiguration(after = LilyEngineAutoConfiguration.class)
@ConditionalOnProperty(prefix = LilyOpenAiProperties.PREFIX, name = "enabled", havingValue = "true")
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
@ConditionalOnClass(RouterFunction.class)
@EnableConfigurationProperties({LilyProperties.class, LilyOpenAiProperties.class})
public final class LilyOpenAiAutoConfiguration {

  private static final Logger log = LoggerFactory.getLogger(LilyOpenAiAutoConfiguration.class);

  @Bean
  @ConditionalOnMissingBean(name = "lilyOpenAiRoutes")
  RouterFunction<ServerResponse> lilyOpenAiRoutes(
      LilyEngine engine,
      LilyProperties lily,
      LilyOpenAiProperties properties,
      ObjectProvider<AnswerRecorder> recorder,
      Environment environment) {
    InetAddress address =
        Binder.get(environment).bind("server.address", InetAddress.class).orElse(null);
    OpenAiOptions options = OpenAiPropertyMapper.options(properties, lily.chat(), address);
    report(options, address);
    return OpenAiEndpoint.routes(engine, options, recorder.getIfUnique(() -> AnswerRecorder.NONE));
  }

  private static void report(OpenAiOptions options, @Nullable InetAddress address) {
    if (!options.apiKeys().isEmpty()) {
      log.info(
          "The OpenAI-compatible API is at {} and asks for one of {} keys",
          options.basePath() + "/",
          options.apiKeys().size());
    } else if (OpenAiPropertyMapper.isLoopback(address)) {
      log.info(
          "The OpenAI-compatible API is at {} for this machine only", options.basePath() + "/");
    } else {
      log.warn(
          "The OpenAI-compatible API is at {} WITHOUT A KEY, and server.address ({}) lets other machines connect. Set lily.openai.api-keys, or server.address=127.0.0.1",
          options.basePath() + "/",
          address == null ? "not set" : address.getHostAddress());
    }
  }
}
