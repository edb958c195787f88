package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.webtestclient.autoconfigure.AutoConfigureWebTestClient;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** A reactive application with actuator on the real model. */
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {
      "lily.context-length=2048",
      "lily.max-sessions=2",
      "lily.chat.temperature=0",
      "lily.chat.thinking=false",
      "management.endpoints.web.exposure.include=health,lily,metrics",
      "management.endpoint.health.show-details=always",
    })
@AutoConfigureWebTestClient(timeout = "60s")
@Timeout(120)
class LilyWebFluxTest {

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  @Import(Chat.class)
  static class Application {}

  @RestController
  static class Chat {
    private final ChatClient client;

    Chat(ChatClient.Builder builder) {
      client = builder.build();
    }

    @GetMapping(path = "/stream", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
    Flux<List<String>> stream(@RequestParam("q") String question) {
      return client.prompt(question).stream().content().map(List::of);
    }

    /** What must not be done: waiting on the event loop. */
    @GetMapping("/call")
    Mono<String> call() {
      return Mono.fromSupplier(() -> String.valueOf(client.prompt("Hi").call().content()))
          .onErrorResume(IllegalStateException.class, e -> Mono.just(e.getMessage()));
    }
  }

  @DynamicPropertySource
  static void model(DynamicPropertyRegistry registry) {
    registry.add("lily.model", Nano.DIRECTORY::toString);
  }

  @Autowired WebTestClient web;
  @Autowired LilyEngine engine;

  @Test
  void describesModelMemoryAndCounters() {
    web.get()
        .uri("/actuator/lily")
        .exchange()
        .expectStatus()
        .isOk()
        .expectBody()
        .jsonPath("$.model.name")
        .isEqualTo(Nano.NAME)
        .jsonPath("$.model.backend")
        .isEqualTo("cpu")
        .jsonPath("$.memory.contextLength")
        .isEqualTo(2048)
        .jsonPath("$.memory.totalBytes")
        .isNumber()
        .jsonPath("$.stats.alive")
        .isEqualTo(true);
  }

  @Test
  void listsHealthWithTheMemoryPlan() {
    web.get()
        .uri("/actuator/health")
        .exchange()
        .expectStatus()
        .isOk()
        .expectBody()
        .jsonPath("$.components.lily.status")
        .isEqualTo("UP")
        .jsonPath("$.components.lily.details.memory.weightBytes")
        .isNumber();
  }

  @Test
  void streamsToAClientAndStaysHealthyMeanwhile() {
    Flux<String> events =
        web.get()
            .uri("/stream?q=Tell me a story.")
            .accept(MediaType.TEXT_EVENT_STREAM)
            .exchange()
            .expectStatus()
            .isOk()
            .returnResult(String.class)
            .getResponseBody();
    StepVerifier.create(events, 5)
        .expectNextCount(5)
        .then(
            () -> {
              for (String probe : List.of("/liveness", "/readiness", "")) {
                // Reactor Netty may stop reading a connection that is used again at once.
                web.get()
                    .uri("/actuator/health" + probe)
                    .header(HttpHeaders.CONNECTION, "close")
                    .exchange()
                    .expectStatus()
                    .isOk();
              }
            })
        .thenRequest(Long.MAX_VALUE)
        .thenConsumeWhile(event -> true)
        .verifyComplete();
    web.get()
        .uri("/actuator/metrics/lily.tokens?tag=type:generated")
        .exchange()
        .expectStatus()
        .isOk()
        .expectBody()
        .jsonPath("$.measurements[0].value")
        .value(Double.class, value -> assertThat(value).isGreaterThan(50));
  }

  @Test
  void freesTheEngineWhenAClientGoesAway() {
    long cancelled = engine.stats().cancelled();
    Flux<String> events =
        web.get()
            .uri("/stream?q=Write a short story. Make it long.")
            .accept(MediaType.TEXT_EVENT_STREAM)
            .exchange()
            .returnResult(String.class)
            .getResponseBody();
    StepVerifier.create(events, 3).expectNextCount(3).thenCancel().verify();
    await().until(() -> engine.stats().cancelled() > cancelled && engine.stats().running() == 0);
  }

  @Test
  void refusesToBlockTheEventLoop() {
    web.get()
        .uri("/call")
        .exchange()
        .expectBody(String.class)
        .value(answer -> assertThat(answer).contains("must not block").contains("stream()"));
  }
}
