package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.FinishReason;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Clients that do not finish what they have to say. */
class SlowClientTest extends EndpointTest {

  @Test
  void refusesABodyThatTakesTooLong() throws Exception {
    EndpointServer server =
        serve(
            ScriptedEngine.playing(completed(FinishReason.STOP)),
            OpenAiOptions.builder().requestTimeout(Duration.ofMillis(200)).build());
    try (RawConnection connection = server.connect()) {
      connection.send(
          "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
      String answer = connection.readToEnd();
      assertThat(answer)
          .startsWith("HTTP/1.1 408 ")
          .containsIgnoringCase("connection: close")
          .contains("\"code\":\"request_timeout\"");
    }
    assertThat(server.engine().requests).isEmpty();
    server.post("{'messages':[{'role':'user','content':'hi'}]}").expectStatus().isOk();
  }
}
