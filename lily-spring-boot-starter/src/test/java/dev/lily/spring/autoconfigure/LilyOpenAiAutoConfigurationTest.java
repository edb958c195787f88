package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.ReactiveWebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;

@Timeout(300)
@ExtendWith(OutputCaptureExtension.class)
class LilyOpenAiAutoConfigurationTest {
  private static final String ROUTES = "lilyOpenAiRoutes";

  private final ReactiveWebApplicationContextRunner runner =
      new ReactiveWebApplicationContextRunner()
          .withConfiguration(AutoConfigurations.of(LilyOpenAiAutoConfiguration.class))
          .withBean(
              LilyEngine.class, Nano::engine, definition -> definition.setDestroyMethodName(""));

  private final ReactiveWebApplicationContextRunner enabled =
      runner.withPropertyValues("lily.openai.enabled=true");

  private static WebTestClient client(RouterFunction<?> routes) {
    return WebTestClient.bindToRouterFunction(routes).build();
  }

  @Test
  void servesNothingByDefault() {
    runner.run(context -> assertThat(context).doesNotHaveBean(ROUTES));
    runner
        .withPropertyValues("lily.openai.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(ROUTES));
  }

  @Test
  void servesTheLoadedModelWhereItIsEnabled() {
    enabled.run(
        context ->
            client(context.getBean(ROUTES, RouterFunction.class))
                .get()
                .uri("http://localhost/v1/models/" + Nano.NAME)
                .header("Host", "localhost")
                .exchange()
                .expectStatus()
                .isOk());
  }

  @Test
  void servesNothingOutsideOfAReactiveWebApplicationAndSaysSo(CapturedOutput output) {
    new ApplicationContextRunner()
        .withConfiguration(
            AutoConfigurations.of(
                LilyOpenAiAutoConfiguration.class, LilyOpenAiAbsenceAutoConfiguration.class))
        .withPropertyValues("lily.openai.enabled=true")
        .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(ROUTES));
    assertThat(output).contains("is NOT served");
  }

  @Test
  void saysNothingOfTheKindWhereItServes(CapturedOutput output) {
    enabled
        .withConfiguration(AutoConfigurations.of(LilyOpenAiAbsenceAutoConfiguration.class))
        .run(context -> assertThat(context).hasBean(ROUTES));
    assertThat(output).doesNotContain("is NOT served");
  }

  @Test
  void doesNotStartWithoutAnEngine() {
    new ReactiveWebApplicationContextRunner()
        .withConfiguration(AutoConfigurations.of(LilyOpenAiAutoConfiguration.class))
        .withPropertyValues("lily.openai.enabled=true")
        .run(
            context ->
                assertThat(context).getFailure().hasMessageContaining(LilyEngine.class.getName()));
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "openai"})
  void servesTheModelAlsoWhereAnotherProviderAnswersTheChats(String provider) {
    new ReactiveWebApplicationContextRunner()
        .withConfiguration(
            AutoConfigurations.of(
                LilyEngineAutoConfiguration.class,
                LilyChatAutoConfiguration.class,
                LilyOpenAiAutoConfiguration.class))
        .withPropertyValues(
            "spring.ai.model.chat=" + provider,
            "lily.openai.enabled=true",
            "lily.model=" + Nano.DIRECTORY,
            "lily.context-length=128")
        .run(
            context -> {
              assertThat(context).hasSingleBean(LilyEngine.class);
              assertThat(context).doesNotHaveBean(ChatModel.class);
              client(context.getBean(ROUTES, RouterFunction.class))
                  .get()
                  .uri("http://localhost/v1/models/" + Nano.NAME)
                  .header("Host", "localhost")
                  .exchange()
                  .expectStatus()
                  .isOk();
            });
  }

  @Test
  void yieldsToRoutesOfTheApplication() {
    RouterFunction<ServerResponse> own =
        RouterFunctions.route().GET("/own", _ -> ServerResponse.ok().build()).build();
    enabled
        .withBean(ROUTES, RouterFunction.class, () -> own)
        .run(context -> assertThat(context.getBean(ROUTES)).isSameAs(own));
  }

  @ParameterizedTest
  @CsvSource({
    ", 403",
    "127.0.0.1, 403",
    "::1, 403",
    "0.0.0.0, 403",
    "192.0.2.1, 200",
  })
  void checksTheHostWhereAWebPageCouldReachTheServerByLoopback(String address, int status) {
    (address == null ? enabled : enabled.withPropertyValues("server.address=" + address))
        .run(
            context ->
                client(context.getBean(ROUTES, RouterFunction.class))
                    .get()
                    .uri("http://evil.example/v1/models")
                    .header("Host", "evil.example")
                    .exchange()
                    .expectStatus()
                    .isEqualTo(status));
  }

  @ParameterizedTest
  @CsvSource({
    "'', true",
    "server.address=0.0.0.0, true",
    "server.address=127.0.0.1, true",
    "server.address=192.0.2.1, false",
    "lily.openai.allowed-hosts=chat.example, false",
  })
  void warnsIfOthersAreServedWithoutAKey(String property, boolean isClosed, CapturedOutput output) {
    enabled
        .withPropertyValues(property.isEmpty() ? new String[0] : new String[] {property})
        .run(context -> assertThat(context).hasNotFailed());
    if (isClosed) {
      assertThat(output).contains("/v1/ for this machine only").doesNotContain("WITHOUT A KEY");
    } else {
      assertThat(output).contains("WITHOUT A KEY").doesNotContain("for this machine only");
    }
  }

  @Test
  void doesNotShowKeys(CapturedOutput output) {
    enabled
        .withPropertyValues("lily.openai.api-keys=sesame-1,sesame-2")
        .run(
            context -> {
              assertThat(context.getBean(LilyOpenAiProperties.class).toString())
                  .contains("2 apiKeys")
                  .doesNotContain("sesame");
            });
    assertThat(output).contains("asks for one of 2 keys").doesNotContain("sesame");
  }

  @ParameterizedTest
  @CsvSource({
    "lily.openai.api-keys, ''",
    "lily.openai.api-keys[0], ''",
    "lily.openai.api-keys, 'sesame,'",
    "lily.openai.api-keys, 'se same'",
    "lily.openai.base-path, v1",
    "lily.openai.base-path, /v1/",
    "lily.openai.base-path, /{v}",
    "lily.openai.allowed-hosts, http://lily.lan",
    "lily.openai.allowed-hosts, lily.lan:8080",
    "lily.openai.model-aliases[0], ' '",
    "lily.openai.max-request-size, 0",
    "lily.openai.max-choices, 0",
    "lily.openai.heartbeat, 0s",
  })
  void refusesAWrongValueNamingTheProperty(String property, String value) {
    enabled
        .withPropertyValues(property + "=" + value)
        .run(
            context -> {
              assertThat(context)
                  .getFailure()
                  .rootCause()
                  .isInstanceOfSatisfying(
                      InvalidConfigurationPropertyValueException.class,
                      e -> {
                        assertThat(property).startsWith(e.getName());
                        assertThat(e.toString()).doesNotContain("same");
                      });
            });
  }
}
