package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.GenerationEvent;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.springframework.http.MediaType;
import org.springframework.test.web.reactive.server.WebTestClient;
import tools.jackson.databind.JsonNode;

/** Servers over scripted engines, closed after each test. */
@Timeout(60)
abstract class EndpointTest {
  private final List<AutoCloseable> open = new ArrayList<>();

  EndpointServer serve(ScriptedEngine engine, OpenAiOptions options) {
    EndpointServer server = EndpointServer.over(engine, options);
    open.add(server);
    open.add(engine);
    return server;
  }

  EndpointServer serve(ScriptedEngine engine) {
    return serve(engine, OpenAiOptions.builder().build());
  }

  EndpointServer serve(GenerationEvent... events) {
    return serve(ScriptedEngine.playing(events));
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable closeable : open) {
      closeable.close();
    }
  }

  /** The error that a response is, in the API's shape. */
  static JsonNode error(WebTestClient.ResponseSpec response) {
    byte[] body =
        response
            .expectHeader()
            .contentType(MediaType.APPLICATION_JSON)
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    JsonNode error = Json.read(new String(body, StandardCharsets.UTF_8)).path("error");
    assertThat(error.propertyNames()).containsExactly("message", "type", "param", "code");
    return error;
  }
}
