package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import dev.lily.spring.actuate.LilyEndpoint;
import dev.lily.spring.actuate.LilyHealthIndicator;
import dev.lily.spring.actuate.LilyMeterBinder;
import dev.lily.spring.actuate.MeteredAnswerRecorder;
import dev.lily.spring.ai.LilyChatModel;
import io.micrometer.core.instrument.MeterRegistry;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

class LilyActuatorAutoConfigurationTest {

  private final ApplicationContextRunner runner =
      new ApplicationContextRunner()
          .withConfiguration(
              AutoConfigurations.of(
                  LilyEngineAutoConfiguration.class,
                  LilyChatAutoConfiguration.class,
                  LilyActuatorAutoConfiguration.class,
                  MetricsAutoConfiguration.class,
                  CompositeMeterRegistryAutoConfiguration.class,
                  SimpleMetricsExportAutoConfiguration.class))
          .withPropertyValues(
              "lily.model=" + Nano.DIRECTORY,
              "lily.context-length=512",
              "lily.max-sessions=1",
              "lily.chat.temperature=0",
              "lily.chat.thinking=false");

  @Test
  void offersHealthThatDoesNotRunTheModel() {
    runner.run(
        context -> {
          Health health = context.getBean(LilyHealthIndicator.class).health();
          assertThat(health.getStatus()).isEqualTo(Status.UP);
          assertThat(health.getDetails())
              .containsEntry("model", Nano.NAME)
              .containsEntry("backend", "cpu")
              .containsEntry("running", 0);
          assertThat(context.getBean(LilyEngine.class).stats().submitted()).isZero();
          assertThat(context.getBean(LilyEngine.class).stats().steps()).isZero();
        });
  }

  @Test
  void offersNoHealthWhenItIsSwitchedOff() {
    runner
        .withPropertyValues("management.health.lily.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(LilyHealthIndicator.class));
  }

  @Test
  void bindsMetersAndRecordsAnswers() {
    runner.run(
        context -> {
          assertThat(context).hasSingleBean(LilyMeterBinder.class);
          assertThat(context).hasSingleBean(MeteredAnswerRecorder.class);
          context.getBean(LilyChatModel.class).call("What is 60 - 16?");
          MeterRegistry registry = context.getBean(MeterRegistry.class);
          assertThat(
                  registry
                      .get("lily.requests")
                      .tag("outcome", "completed")
                      .functionCounter()
                      .count())
              .isEqualTo(1);
          assertThat(registry.get("lily.tokens").tag("type", "generated").functionCounter().count())
              .isGreaterThan(3);
          assertThat(registry.get("lily.time.to.first.token").timer().count()).isEqualTo(1);
          assertThat(registry.get("lily.tokens.per.second").summary().mean()).isPositive();
        });
  }

  @Test
  void offersTheEndpointWhereItIsExposed() {
    runner.run(context -> assertThat(context).doesNotHaveBean(LilyEndpoint.class));
    runner
        .withPropertyValues("management.endpoints.web.exposure.include=lily")
        .run(
            context -> {
              LilyEndpoint.Description description = context.getBean(LilyEndpoint.class).describe();
              assertThat(description.model().name()).isEqualTo(Nano.NAME);
              assertThat(description.memory().totalBytes()).isPositive();
              assertThat(description.memory().contextLength()).isEqualTo(512);
              assertThat(description.stats().alive()).isTrue();
            });
  }
}
