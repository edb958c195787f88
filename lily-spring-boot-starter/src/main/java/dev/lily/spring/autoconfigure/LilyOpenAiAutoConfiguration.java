package dev.lily.spring.autoconfigure;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.RequestOverflow;
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
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.ServerResponse;
import org.springframework.web.server.WebFilter;
import reactor.netty.http.server.HttpServer;

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
  @ConditionalOnMissingBean
  OpenAiOptions lilyOpenAiOptions(
      LilyProperties lily, LilyOpenAiProperties properties, Environment environment) {
    InetAddress address =
        Binder.get(environment).bind("server.address", InetAddress.class).orElse(null);
    OpenAiOptions options = OpenAiPropertyMapper.options(properties, lily.chat(), address);
    report(options, address);
    return options;
  }

  @Bean
  @ConditionalOnMissingBean(name = "lilyOpenAiRoutes")
  RouterFunction<ServerResponse> lilyOpenAiRoutes(
      LilyEngine engine,
      OpenAiOptions options,
      ObjectProvider<AnswerRecorder> recorder,
      ObjectProvider<RequestOverflow> overflow) {
    return OpenAiEndpoint.routes(
        engine,
        options,
        recorder.getIfUnique(() -> AnswerRecorder.NONE),
        overflow.getIfUnique(() -> RequestOverflow.NONE));
  }

  @Bean
  @ConditionalOnMissingBean(name = "lilyOpenAiOriginFilter")
  WebFilter lilyOpenAiOriginFilter(OpenAiOptions options) {
    return OpenAiEndpoint.originFilter(options);
  }

  /** Only where the server is Netty. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({HttpServer.class, NettyReactiveWebServerFactory.class})
  static class NettyConfiguration {
    @Bean
    @ConditionalOnMissingBean
    RequestHeadTimeout lilyRequestHeadTimeout(OpenAiOptions options) {
      return new RequestHeadTimeout(options.requestTimeout());
    }
  }

  private static void report(OpenAiOptions options, @Nullable InetAddress address) {
    if (!options.apiKeys().isEmpty()) {
      log.info(
          "The OpenAI-compatible API is at {} and asks for one of {} keys",
          options.basePath() + "/",
          options.apiKeys().size());
    } else if (OpenAiPropertyMapper.isLoopback(address) || options.servesThisMachineOnly()) {
      log.info(
          "The OpenAI-compatible API is at {} for this machine only, since it has no keys (lily.openai.api-keys)",
          options.basePath() + "/");
    } else {
      log.warn(
          "The OpenAI-compatible API is at {} WITHOUT A KEY, and server.address ({}) lets other machines connect. Set lily.openai.api-keys, or server.address=127.0.0.1",
          options.basePath() + "/",
          address == null ? "not set" : address.getHostAddress());
    }
  }
}
