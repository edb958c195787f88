package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.FinishReason;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpHeaders;
import org.springframework.test.web.reactive.server.WebTestClient;
import tools.jackson.databind.JsonNode;

/** Web pages that call the API, and request ids. */
class OriginTest extends EndpointTest {

  private EndpointServer allowing(String... origins) {
    return serve(
        ScriptedEngine.playing(completed(FinishReason.STOP)),
        OpenAiOptions.builder().allowedOrigins(List.of(origins)).build());
  }

  private static WebTestClient.ResponseSpec get(EndpointServer server, String origin) {
    return server.client().get().uri("/v1/models").header("Origin", origin).exchange();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "https://evil.example",
        "http://localhost",
        "http://localhost:1",
        "null",
        "http://127.0.0.1.evil.example",
        "chrome-extension://abc",
        "no origin",
      })
  void refusesForeignOrigins(String origin) {
    EndpointServer server = allowing("https://chat.example");
    JsonNode error = error(get(server, origin).expectStatus().isForbidden());
    assertThat(error.path("code").stringValue()).isEqualTo("origin_not_allowed");
  }

  @Test
  void servesItsOwnPagesAndClientsThatAreNoPages() {
    EndpointServer server = allowing();
    get(server, "http://127.0.0.1:" + server.port()).expectStatus().isOk();
    server.client().get().uri("/v1/models").exchange().expectStatus().isOk();
    // Behind a proxy the host is another one, but the browser knows.
    server
        .client()
        .get()
        .uri("/v1/models")
        .header("Origin", "https://lily.example")
        .header("Sec-Fetch-Site", "same-origin")
        .exchange()
        .expectStatus()
        .isOk();
  }

  @Test
  void letsAllowedOriginsReadTheAnswer() {
    EndpointServer server = allowing("https://Chat.example:8443");
    get(server, "https://chat.example:8443")
        .expectStatus()
        .isOk()
        .expectHeader()
        .valueEquals("Access-Control-Allow-Origin", "https://chat.example:8443")
        .expectHeader()
        .valueEquals("Access-Control-Expose-Headers", "x-request-id, Retry-After")
        .expectHeader()
        .valueEquals("Vary", "Origin");
    get(allowing("*"), "https://any.example").expectStatus().isOk();
    get(allowing("null"), "null").expectStatus().isOk();
  }

  private static WebTestClient.ResponseSpec preflight(EndpointServer server, String origin) {
    return server
        .client()
        .options()
        .uri("/v1/chat/completions")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "authorization,content-type")
        .exchange();
  }

  @Test
  void answersPreflightRequestsWithoutAKey() {
    EndpointServer server =
        serve(
            ScriptedEngine.playing(completed(FinishReason.STOP)),
            OpenAiOptions.builder()
                .allowedOrigins(List.of("https://chat.example"))
                .apiKeys(List.of("k"))
                .build());
    preflight(server, "https://chat.example")
        .expectStatus()
        .isNoContent()
        .expectHeader()
        .valueEquals("Access-Control-Allow-Methods", "GET, POST")
        .expectHeader()
        .valueEquals("Access-Control-Allow-Headers", "authorization,content-type");
    preflight(server, "https://evil.example")
        .expectStatus()
        .isForbidden()
        .expectHeader()
        .doesNotExist("Access-Control-Allow-Origin");
    get(server, "https://chat.example").expectStatus().isUnauthorized();
  }

  @Test
  void leavesOtherPathsToTheApplication() {
    allowing()
        .client()
        .get()
        .uri("/v1/orders")
        .header("Origin", "https://evil.example")
        .exchange()
        .expectStatus()
        .isNotFound();
  }

  private static String requestId(EndpointServer server, String path, String sent) {
    HttpHeaders headers =
        server
            .client()
            .get()
            .uri(path)
            .header("x-request-id", sent)
            .exchange()
            .expectBody()
            .returnResult()
            .getResponseHeaders();
    return headers.getFirst("x-request-id");
  }

  @Test
  void givesEachRequestAnIdOrKeepsTheClientsOwn() {
    EndpointServer server = allowing();
    assertThat(requestId(server, "/v1/models", "my-id.7")).isEqualTo("my-id.7");
    assertThat(requestId(server, "/v1/models/gone", "my-id.7")).isEqualTo("my-id.7");
    for (String bad : List.of("", "a b", "x".repeat(129), "ä")) {
      assertThat(requestId(server, "/v1/models", bad)).matches("req_[0-9a-f]{32}");
    }
    server
        .post("{'stream':true,'messages':[{'role':'user','content':'hi'}]}")
        .expectStatus()
        .isOk()
        .expectHeader()
        .valueMatches("x-request-id", "req_[0-9a-f]{32}");
  }
}
