package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.test.web.reactive.server.WebTestClient;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class ActuatorTest {

  @LocalServerPort private int port;
  private WebTestClient client;

  @BeforeEach
  void connect() {
    client =
        WebTestClient.bindToServer()
            .baseUrl("http://127.0.0.1:" + port)
            .responseTimeout(Duration.ofMinutes(5))
            .build();
    client
        .get()
        .uri("/api/ask?question={question}", "What is 2 + 3?")
        .exchange()
        .expectStatus()
        .isOk();
  }

  @Test
  void healthNamesModelAndBackEnd() {
    body("/actuator/health")
        .jsonPath("$.status")
        .isEqualTo("UP")
        .jsonPath("$.components.lily.status")
        .isEqualTo("UP")
        .jsonPath("$.components.lily.details.model")
        .isEqualTo("lily-nano-4bit")
        .jsonPath("$.components.lily.details.backend")
        .isEqualTo("cpu");
  }

  @Test
  void readinessIncludesTheEngineAndLivenessDoesNot() {
    body("/actuator/health/readiness").jsonPath("$.components.lily.status").isEqualTo("UP");
    body("/actuator/health/liveness").jsonPath("$.components.lily").doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil"})
  void refusesAForeignHostOnEveryPath(String host) {
    for (String path : List.of("/", "/api/ask?question=x", "/actuator/lily", "/v1/models")) {
      client.get().uri(path).header("Host", host).exchange().expectStatus().isForbidden();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"localhost", "localhost:9", "127.0.0.1:8080", "[::1]", "[::1]:8080"})
  void servesLoopbackNamesWithAnyPort(String host) {
    client.get().uri("/actuator/health").header("Host", host).exchange().expectStatus().isOk();
  }

  @Test
  void theEndpointShowsModelMemoryAndCounters() {
    body("/actuator/lily")
        .jsonPath("$.model.name")
        .isEqualTo("lily-nano-4bit")
        .jsonPath("$.memory.weightBytes")
        .isNumber()
        .jsonPath("$.stats.alive")
        .isEqualTo(true)
        .jsonPath("$.stats.completed")
        .value(Long.class, completed -> assertThat(completed).isPositive());
  }

  @Test
  void metersAreThereUnderTheirNames() {
    body("/actuator/metrics")
        .jsonPath("$.names")
        .value(
            new ParameterizedTypeReference<List<String>>() {},
            names ->
                assertThat(names)
                    .contains(
                        "lily.requests",
                        "lily.tokens",
                        "lily.steps",
                        "lily.queue.size",
                        "lily.sessions.active",
                        "lily.kv.pages",
                        "lily.time.to.first.token",
                        "lily.tokens.per.second",
                        "gen_ai.client.operation",
                        "gen_ai.client.token.usage"));
  }

  private WebTestClient.BodyContentSpec body(String path) {
    return client.get().uri(path).exchange().expectStatus().isOk().expectBody();
  }
}
