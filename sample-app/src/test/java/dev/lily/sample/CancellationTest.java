package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.LilyEngine;
import dev.lily.sample.ChatController.Answer;
import dev.lily.sample.ChatController.Piece;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/** Clients that go away in the middle of answers that would go on for thousands of tokens. */
@SpringBootTest(
    webEnvironment = WebEnvironment.RANDOM_PORT,
    properties = CancellationTest.ENDLESS_ANSWERS)
@ExtendWith(OutputCaptureExtension.class)
class CancellationTest {

  static final String ENDLESS_ANSWERS = "lily.chat.min-tokens=7000";

  private static final Pattern PROBLEM = Pattern.compile(" (WARN|ERROR) \\d+ --- ");
  private static final Duration LONG = Duration.ofMinutes(2);

  @Autowired private LilyEngine engine;
  @LocalServerPort private int port;
  private WebClient client;
  private WebTestClient testClient;

  @BeforeEach
  void connect() {
    client = WebClient.create("http://127.0.0.1:" + port);
    testClient =
        WebTestClient.bindToServer()
            .baseUrl("http://127.0.0.1:" + port)
            .responseTimeout(Duration.ofMinutes(5))
            .build();
  }

  @AfterEach
  void nothingRunsAnyMore() {
    await().atMost(LONG).until(() -> engine.stats().running() == 0);
  }

  @Test
  void aClosedStreamStopsTheEngine(CapturedOutput output) {
    long cancelled = engine.stats().cancelled();
    List<Piece> pieces = stream().take(5).collectList().block(LONG);
    assertThat(pieces).hasSize(5);
    awaitCancelled(cancelled + 1);
    assertThat(output.toString().lines()).noneMatch(PROBLEM.asPredicate());
  }

  @Test
  void aClientThatStopsWaitingStopsTheEngine(CapturedOutput output) {
    long cancelled = engine.stats().cancelled();
    Disposable waiting =
        client
            .get()
            .uri("/api/ask?question={question}", "Tell me a story.")
            .retrieve()
            .bodyToMono(Answer.class)
            .subscribe();
    await().atMost(LONG).until(() -> engine.stats().running() == 1);
    waiting.dispose();
    awaitCancelled(cancelled + 1);
    assertThat(output.toString().lines()).noneMatch(PROBLEM.asPredicate());
  }

  @Test
  void othersAreAnsweredWhileStreamsAreOpen() {
    List<Disposable> streams = new ArrayList<>();
    try {
      for (int i = 0; i < 6; i++) {
        streams.add(stream().subscribe());
      }
      await().atMost(LONG).until(() -> engine.stats().running() == 6);
      testClient.get().uri("/actuator/health").exchange().expectStatus().isOk();
      testClient
          .post()
          .uri("/v1/chat/completions")
          .bodyValue(
              Map.of(
                  "messages",
                  List.of(Map.of("role", "user", "content", "What is 2 + 3?")),
                  "max_tokens",
                  3))
          .exchange()
          .expectStatus()
          .isOk()
          .expectBody()
          .jsonPath("$.usage.completion_tokens")
          .isEqualTo(3);
      assertThat(engine.stats().running()).isEqualTo(6);
    } finally {
      streams.forEach(Disposable::dispose);
    }
  }

  @Test
  void probesDoNotFlapWhileEveryPlaceIsTakenAndOthersWait() {
    List<Disposable> streams = new ArrayList<>();
    try {
      for (int i = 0; i < 12; i++) {
        streams.add(stream().subscribe());
      }
      await().atMost(LONG).until(() -> engine.stats().running() == 8);
      await().atMost(LONG).until(() -> engine.stats().queued() == 4);
      long submitted = engine.stats().submitted();
      for (int i = 0; i < 20; i++) {
        for (String probe : List.of("liveness", "readiness")) {
          testClient
              .get()
              .uri("/actuator/health/{probe}", probe)
              .exchange()
              .expectStatus()
              .isOk()
              .expectBody()
              .jsonPath("$.status")
              .isEqualTo("UP");
        }
      }
      assertThat(engine.stats().submitted()).as("no probe runs the model").isEqualTo(submitted);
      assertThat(engine.stats().queued()).isEqualTo(4);
    } finally {
      streams.forEach(Disposable::dispose);
    }
  }

  private Flux<Piece> stream() {
    return client
        .get()
        .uri("/api/stream?question={question}", "Tell me a story.")
        .retrieve()
        .bodyToFlux(Piece.class);
  }

  private void awaitCancelled(long count) {
    await().atMost(LONG).until(() -> engine.stats().cancelled() == count);
  }
}
