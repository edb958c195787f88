package dev.lily.spring.autoconfigure;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.OverflowRecorder;
import dev.lily.spring.actuate.LilyEndpoint;
import dev.lily.spring.actuate.LilyHealthIndicator;
import dev.lily.spring.actuate.LilyMeterBinder;
import dev.lily.spring.actuate.MeteredAnswerRecorder;
import dev.lily.spring.actuate.MeteredOverflowRecorder;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Health, meters and the {@code lily} endpoint, each where its part of the actuator is there. */
@AutoConfiguration(
    after = LilyEngineAutoConfiguration.class,
    afterName =
        "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration")
@EnableConfigurationProperties(LilyProperties.class)
public final class LilyActuatorAutoConfiguration {

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
  @ConditionalOnBean(LilyEngine.class)
  @ConditionalOnEnabledHealthIndicator("lily")
  static class HealthConfiguration {

    /** Sessions wait up to the stall timeout for a consumer; twice that without a step is stuck. */
    private static final int STALL_TIMEOUTS_UNTIL_STUCK = 2;

    @Bean
    @ConditionalOnMissingBean(name = "lilyHealthIndicator")
    LilyHealthIndicator lilyHealthIndicator(
        LilyEngine engine, LilyProperties properties, ObjectProvider<LilyEngineLifecycle> cycle) {
      return new LilyHealthIndicator(
          engine,
          () -> {
            LilyEngineLifecycle present = cycle.getIfAvailable();
            return present != null && present.isDraining();
          },
          properties.stallTimeout().multipliedBy(STALL_TIMEOUTS_UNTIL_STUCK));
    }
  }

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(MeterRegistry.class)
  @ConditionalOnBean({LilyEngine.class, MeterRegistry.class})
  static class MeterConfiguration {

    @Bean
    @ConditionalOnMissingBean
    LilyMeterBinder lilyMeterBinder(LilyEngine engine) {
      return new LilyMeterBinder(engine);
    }

    @Bean
    @ConditionalOnMissingBean(AnswerRecorder.class)
    MeteredAnswerRecorder lilyAnswerRecorder(MeterRegistry registry) {
      return new MeteredAnswerRecorder(registry);
    }

    @Bean
    @ConditionalOnMissingBean(OverflowRecorder.class)
    MeteredOverflowRecorder lilyOverflowRecorder(MeterRegistry registry) {
      return new MeteredOverflowRecorder(registry);
    }
  }

  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass({Endpoint.class, ConditionalOnAvailableEndpoint.class})
  @ConditionalOnBean(LilyEngine.class)
  static class EndpointConfiguration {

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnAvailableEndpoint
    LilyEndpoint lilyEndpoint(LilyEngine engine) {
      return new LilyEndpoint(engine);
    }
  }
}
