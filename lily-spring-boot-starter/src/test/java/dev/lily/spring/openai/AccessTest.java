package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.lily.engine.generation.FinishReason;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.server.MockServerWebExchange;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import tools.jackson.databind.JsonNode;

@Timeout(60)
class AccessTest {
  private static final String WHOLE = "{'messages':[{'role':'user','content':'hi'}]}";

  private final List<AutoCloseable> open = new ArrayList<>();

  private EndpointServer serve(OpenAiOptions.Builder options) {
    ScriptedEngine engine = ScriptedEngine.playing(completed(FinishReason.STOP));
    EndpointServer server = EndpointServer.over(engine, options.build());
    open.add(server);
    open.add(engine);
    return server;
  }

  private EndpointServer serve() {
    return serve(OpenAiOptions.builder());
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable closeable : open) {
      closeable.close();
    }
  }

  private static int status(EndpointServer server, String head) throws IOException {
    try (RawConnection connection = server.connect()) {
      connection.send(head.replace("|", "\r\n") + "\r\n\r\n");
      String answer = connection.readUntil("\r\n\r\n");
      return Integer.parseInt(answer.split(" ")[1]);
    }
  }

  private static JsonNode error(byte[] body) {
    JsonNode error = Json.read(new String(body)).path("error");
    assertThat(error.propertyNames()).containsExactly("message", "type", "param", "code");
    return error;
  }

  // Hosts.

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GET /v1/models HTTP/1.1|Host: localhost",
        "GET /v1/models HTTP/1.1|Host: LocalHost:8080",
        "GET /v1/models HTTP/1.1|Host: 127.0.0.1:1",
        "GET /v1/models HTTP/1.1|Host: 127.1.2.3",
        "GET /v1/models HTTP/1.1|Host: [::1]:8080",
        "GET /v1/models HTTP/1.1|Host: [::1]",
        "GET http://localhost/v1/models HTTP/1.1|Host: localhost",
      })
  void servesLoopbackNamesWithAnyPort(String head) throws IOException {
    assertThat(status(serve(), head)).isEqualTo(200);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GET /v1/models HTTP/1.1|Host: evil.example:8080",
        "GET /v1/models HTTP/1.1|Host: 127.0.0.1.evil.example",
        "GET /v1/models HTTP/1.1|Host: localhost.evil",
        "GET /v1/models HTTP/1.1|Host: evil.localhost",
        "GET /v1/models HTTP/1.1|Host: 10.0.0.1",
        "GET /v1/models HTTP/1.1|Host: [::2]",
        "GET /v1/models HTTP/1.1|Host: localhost, evil.example",
        "GET /v1/models HTTP/1.1|Host: user@localhost",
        "GET /v1/models HTTP/1.1|Host: localhost|Host: evil.example",
        "GET /v1/models HTTP/1.0",
        "GET http://evil.example/v1/models HTTP/1.1|Host: localhost",
        "GET http://localhost@evil.example/v1/models HTTP/1.1|Host: localhost",
        "GET /v1/models/nano HTTP/1.1|Host: evil.example",
        "GET /v1/responses HTTP/1.1|Host: evil.example",
        "POST /v1/chat/completions HTTP/1.1|Host: evil.example|Content-Length: 0",
      })
  void refusesForeignHostsOnEveryPath(String head) throws IOException {
    assertThat(status(serve(), head)).isEqualTo(403);
  }

  @ParameterizedTest
  @CsvSource({
    "'', '', 192.0.2.7, false",
    "'', '', 2001:db8::7, false",
    "'', '', 127.0.0.1, true",
    "'', '', ::1, true",
    "'', proxy.example, 192.0.2.7, true",
    "key, '', 192.0.2.7, true",
  })
  void servesOtherMachinesOnlyWithAKeyOrAnAllowedHost(
      String key, String allowedHost, String remote, boolean served) {
    OpenAiOptions options =
        OpenAiOptions.builder()
            .apiKeys(key.isEmpty() ? List.of() : List.of(key))
            .allowedHosts(allowedHost.isEmpty() ? List.of() : List.of(allowedHost))
            .build();
    MockServerHttpRequest.BaseBuilder<?> request =
        MockServerHttpRequest.get("http://localhost/v1/models")
            .header("Host", "localhost")
            .header("Authorization", "Bearer key")
            .remoteAddress(new InetSocketAddress(InetAddress.ofLiteral(remote), 50_000));
    Mono<ServerResponse> answer =
        new AccessFilter(options)
            .filter(
                ServerRequest.create(MockServerWebExchange.from(request), List.of()),
                _ -> ServerResponse.ok().build());
    if (served) {
      assertThat(answer.block().statusCode()).isEqualTo(HttpStatus.OK);
    } else {
      assertThatExceptionOfType(ApiException.class)
          .isThrownBy(answer::block)
          .satisfies(
              e -> {
                assertThat(e.error().status()).isEqualTo(HttpStatus.FORBIDDEN);
                assertThat(e.error().code()).isEqualTo("key_required");
              });
    }
  }

  @Test
  void tellsForeignHostsWhyInTheShapeOfTheApi() {
    EndpointServer server = serve();
    byte[] body =
        server
            .client()
            .get()
            .uri("/v1/models")
            .header("Host", "evil.example")
            .exchange()
            .expectStatus()
            .isForbidden()
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    assertThat(error(body).path("code").stringValue()).isEqualTo("host_not_allowed");
    assertThat(server.engine().requests).isEmpty();
  }

  @Test
  void servesHostsThatAreAllowed() throws IOException {
    EndpointServer named =
        serve(OpenAiOptions.builder().allowedHosts(List.of("Lily.Lan", "[fe80::1]")));
    assertThat(status(named, "GET /v1/models HTTP/1.1|Host: lily.lan:8080")).isEqualTo(200);
    assertThat(status(named, "GET /v1/models HTTP/1.1|Host: [FE80::1]")).isEqualTo(200);
    assertThat(status(named, "GET /v1/models HTTP/1.1|Host: lily.lan.evil")).isEqualTo(403);
    EndpointServer any = serve(OpenAiOptions.builder().allowedHosts(List.of("*")));
    assertThat(status(any, "GET /v1/models HTTP/1.1|Host: evil.example")).isEqualTo(200);
    EndpointServer unchecked = serve(OpenAiOptions.builder().checkHost(false));
    assertThat(status(unchecked, "GET /v1/models HTTP/1.1|Host: evil.example")).isEqualTo(200);
  }

  // Keys.

  @ParameterizedTest
  @CsvSource({
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer k1, 200",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: bearer k1, 200",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer k2, 200",
    "'GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer k1 ', 200",
    "GET /v1/models HTTP/1.1|Host: x, 401",
    "GET /v1/models HTTP/1.1|Host: localhost, 401",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer k, 401",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer k11, 401",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer K1, 401",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Bearer, 401",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: k1, 401",
    "GET /v1/models HTTP/1.1|Host: x|Authorization: Basic k1, 401",
    "GET /v1/responses HTTP/1.1|Host: x, 401",
    "PUT /v1/models HTTP/1.1|Host: x|Content-Length: 0, 401",
  })
  void asksForOneOfTheKeys(String head, int status) throws IOException {
    EndpointServer server = serve(OpenAiOptions.builder().apiKeys(List.of("k1", "k2")));
    assertThat(status(server, head)).isEqualTo(status);
  }

  @Test
  void tellsClientsWithoutAKeyHowToSendIt() {
    EndpointServer server = serve(OpenAiOptions.builder().apiKeys(List.of("sesame-open")));
    byte[] body =
        server
            .post(WHOLE)
            .expectStatus()
            .isUnauthorized()
            .expectHeader()
            .valueEquals("WWW-Authenticate", "Bearer")
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    assertThat(error(body).path("code").stringValue()).isEqualTo("invalid_api_key");
    assertThat(new String(body)).doesNotContain("sesame");
    assertThat(server.engine().requests).isEmpty();
  }

  // Paths, methods, bodies.

  @Test
  void listsTheModelAndItsAliases() {
    EndpointServer server =
        serve(OpenAiOptions.builder().modelAliases(List.of("gpt-4o", "nano", "gpt-4o")));
    byte[] list =
        server
            .client()
            .get()
            .uri("/v1/models")
            .exchange()
            .expectStatus()
            .isOk()
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    assertThat(Json.read(new String(list)))
        .isEqualTo(
            Json.object(
                """
                {'object':'list','data':[
                  {'id':'nano','object':'model','created':1750000000,'owned_by':'lily'},
                  {'id':'gpt-4o','object':'model','created':1750000000,'owned_by':'lily'}]}"""));
    server.client().get().uri("/v1/models/gpt-4o").exchange().expectStatus().isOk();
    byte[] missing =
        server
            .client()
            .get()
            .uri("/v1/models/other")
            .exchange()
            .expectStatus()
            .isNotFound()
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    assertThat(error(missing).path("code").stringValue()).isEqualTo("model_not_found");
  }

  @ParameterizedTest
  @CsvSource({
    "GET, /v1/chat/completions, 405, POST",
    "DELETE, /v1/chat/completions, 405, POST",
    "POST, /v1/models, 405, GET",
    "DELETE, /v1/models/nano, 405, GET",
    "GET, /v1/models/a/b, 404,",
    "GET, /v1/completions, 405, POST",
    "PUT, /v1/responses, 405, POST",
    "POST, /v1/openapi.json, 405, GET",
    "GET, /v1/responses/resp_1, 404,",
    "POST, /v1/embeddings, 404,",
    "GET, /v1/chat/completions/chatcmpl-1, 404,",
  })
  void answersOtherPathsAndMethodsInTheShapeOfTheApi(
      String method, String path, int status, String allow) {
    var result =
        serve()
            .client()
            .method(HttpMethod.valueOf(method))
            .uri(path)
            .exchange()
            .expectStatus()
            .isEqualTo(status)
            .expectHeader()
            .contentType(MediaType.APPLICATION_JSON)
            .expectBody()
            .returnResult();
    assertThat(result.getResponseHeaders().getFirst("Allow")).isEqualTo(allow);
    assertThat(error(result.getResponseBodyContent()).path("type").stringValue())
        .isEqualTo("invalid_request_error");
  }

  @Test
  void leavesOtherPathsToTheApplication() {
    serve()
        .client()
        .get()
        .uri("/v1/orders")
        .exchange()
        .expectStatus()
        .isNotFound()
        .expectBody()
        .isEmpty();
  }

  @Test
  void servesBelowAnotherBasePath() {
    EndpointServer server = serve(OpenAiOptions.builder().basePath("/api/openai"));
    server.client().get().uri("/api/openai/models").exchange().expectStatus().isOk();
    server.client().get().uri("/v1/models").exchange().expectStatus().isNotFound();
    EndpointServer root = serve(OpenAiOptions.builder().basePath(""));
    root.client().get().uri("/models").exchange().expectStatus().isOk();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "*/*"})
  void refusesBodiesThatABrowserSendsAnywhere(String type) throws IOException {
    EndpointServer server = serve();
    assertThat(
            status(
                server,
                "POST /v1/chat/completions HTTP/1.1|Host: localhost|Content-Length: 0|Content-Type: "
                    + type))
        .isEqualTo(415);
    assertThat(
            status(server, "POST /v1/chat/completions HTTP/1.1|Host: localhost|Content-Length: 0"))
        .isEqualTo(415);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"application/json", "application/json;charset=UTF-8", "application/x+json"})
  void takesEveryKindOfJson(String type) {
    serve()
        .client()
        .post()
        .uri("/v1/chat/completions")
        .contentType(MediaType.parseMediaType(type))
        .bodyValue(WHOLE.replace('\'', '"').getBytes())
        .exchange()
        .expectStatus()
        .isOk();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", " ", "{", "[]", "null", "\"x\"", "{'a':1} x", "{'a':NaN}", "{'a':'\\ud8'}"})
  void refusesBodiesThatAreNoJsonObject(String body) {
    byte[] answer =
        serve()
            .post(body)
            .expectStatus()
            .isBadRequest()
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    assertThat(error(answer).path("message").stringValue()).startsWith("The body is ");
  }

  @Test
  void refusesDeepBodies() {
    EndpointServer server = serve();
    String deep = "[".repeat(50_000) + "]".repeat(50_000);
    for (String field : List.of("response_format", "tools", "messages", "unknown")) {
      byte[] answer =
          server
              .post("{'" + field + "':" + deep + "}")
              .expectStatus()
              .isBadRequest()
              .expectBody()
              .returnResult()
              .getResponseBodyContent();
      assertThat(error(answer).path("message").stringValue()).contains("too deep");
    }
    String arguments = "[".repeat(3000) + "]".repeat(3000);
    server
        .post(
            "{'messages':[{'role':'user','content':'x'},{'role':'assistant','content':null,'tool_calls':[{'id':'a','type':'function','function':{'name':'f','arguments':'"
                + arguments
                + "'}}]}]}")
        .expectStatus()
        .isBadRequest();
  }

  @Test
  void refusesLargeBodiesAsSoonAsTheyAreKnownToBe() throws IOException {
    EndpointServer server = serve(OpenAiOptions.builder().maxRequestBytes(1000));
    String head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    try (RawConnection connection = server.connect()) {
      connection.send(head + "Content-Length: 1001\r\n\r\n");
      assertThat(connection.readUntil("}}"))
          .startsWith("HTTP/1.1 413 ")
          .contains("\"code\":\"request_too_large\"");
    }
    try (RawConnection connection = server.connect()) {
      connection.send(head + "Transfer-Encoding: chunked\r\n\r\n");
      connection.send("200\r\n" + " ".repeat(0x200) + "\r\n200\r\n" + " ".repeat(0x200) + "\r\n");
      assertThat(connection.readUntil("}}"))
          .startsWith("HTTP/1.1 413 ")
          .contains("\"code\":\"request_too_large\"");
    }
    String padding = " ".repeat(1000 - WHOLE.length());
    server.post(WHOLE + padding).expectStatus().isOk();
    server.post(WHOLE + padding + " ").expectStatus().isEqualTo(413);
  }

  @Test
  void takesBodiesBeyondTheLimitOfSpringsCodecs() {
    serve()
        .post("{'messages':[{'role':'user','content':'" + "a ".repeat(500_000) + "'}]}")
        .expectStatus()
        .isOk();
  }
}
