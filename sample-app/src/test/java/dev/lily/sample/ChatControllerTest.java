package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.sample.ChatController.Answer;
import dev.lily.sample.ChatController.Piece;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.MediaType;
import org.springframework.http.ProblemDetail;
import org.springframework.test.web.reactive.server.WebTestClient;

@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class ChatControllerTest {

  private static final String IDENTITY =
      "I am Lily nano, a tiny language model. I was trained on synthetic data to show what the Lily engine can do.";

  @LocalServerPort private int port;
  private WebTestClient client;

  @BeforeEach
  void connect() {
    client =
        WebTestClient.bindToServer()
            .baseUrl("http://127.0.0.1:" + port)
            .responseTimeout(Duration.ofMinutes(5))
            .build();
  }

  @Test
  void answersAQuestion() {
    assertThat(get("ask", "What is 47 + 38?")).isEqualTo("47 + 38 = 85");
  }

  @Test
  void answersAPostedQuestion() {
    client
        .post()
        .uri("/api/ask")
        .bodyValue(Map.of("question", "What is the capital of France?"))
        .exchange()
        .expectStatus()
        .isOk()
        .expectBody(Answer.class)
        .isEqualTo(new Answer("The capital of France is Paris."));
  }

  @ParameterizedTest
  @ValueSource(strings = {"{}", "{\"question\": \" \"}", "{\"question\": null}", "no JSON"})
  void refusesABodyWithoutAQuestion(String body) {
    client
        .post()
        .uri("/api/ask")
        .contentType(MediaType.APPLICATION_JSON)
        .bodyValue(body)
        .exchange()
        .expectStatus()
        .isBadRequest();
  }

  @Test
  void refusesAQuestionThatDoesNotFitTheContext() {
    client
        .post()
        .uri("/api/ask")
        .bodyValue(Map.of("question", "long ".repeat(20_000)))
        .exchange()
        .expectStatus()
        .isBadRequest()
        .expectBody(ProblemDetail.class)
        .value(problem -> assertThat(problem.getDetail()).contains("8192"));
  }

  @Test
  void streamsTheAnswerWithItsBlanks() {
    List<Piece> pieces =
        client
            .get()
            .uri("/api/stream?question={question}", "Who are you?")
            .exchange()
            .expectStatus()
            .isOk()
            .expectHeader()
            .contentTypeCompatibleWith(MediaType.TEXT_EVENT_STREAM)
            .returnResult(Piece.class)
            .getResponseBody()
            .collectList()
            .block();
    assertThat(pieces).hasSizeGreaterThan(10).anyMatch(piece -> piece.text().startsWith(" "));
    assertThat(pieces.stream().map(Piece::text).collect(Collectors.joining())).isEqualTo(IDENTITY);
  }

  @Test
  void callsTheWeatherToolForEachCity() {
    assertThat(get("weather", "What is the weather in Rome and Cairo?"))
        .isEqualTo("It is clear and 24 degrees in Rome. It is sunny and 33 degrees in Cairo.");
  }

  private String get(String path, String question) {
    Answer answer =
        client
            .get()
            .uri("/api/" + path + "?question={question}", question)
            .exchange()
            .expectStatus()
            .isOk()
            .expectBody(Answer.class)
            .returnResult()
            .getResponseBody();
    assertThat(answer).isNotNull();
    return answer.answer();
  }
}
