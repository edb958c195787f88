package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Import;
import org.springframework.http.MediaType;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import tools.jackson.databind.JsonNode;

/** The endpoint as an application gets it, whose JSON settings it must not follow. */
@Timeout(300)
@SpringBootTest(
    classes = OpenAiApplicationTest.Application.class,
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {
      "server.address=127.0.0.1",
      "lily.model=${lily.nano.dir}",
      "lily.context-length=512",
      "lily.max-sessions=2",
      "lily.chat.thinking=false",
      "lily.openai.enabled=true",
      "spring.jackson.property-naming-strategy=UPPER_CAMEL_CASE",
      "spring.jackson.default-property-inclusion=non_null",
    })
class OpenAiApplicationTest {

  @SpringBootConfiguration
  @EnableAutoConfiguration
  @Import(OrdersController.class)
  static class Application {}

  @RestController
  static class OrdersController {
    @GetMapping("/v1/orders")
    String orders() {
      return "none";
    }
  }

  @LocalServerPort int port;

  private WebTestClient client;

  @BeforeEach
  void connect() {
    client =
        WebTestClient.bindToServer()
            .baseUrl("http://127.0.0.1:" + port)
            .responseTimeout(Duration.ofMinutes(2))
            .build();
  }

  private JsonNode post(String fields, String content, int status) {
    String body =
        "{'temperature':0,%s'messages':[{'role':'user','content':'%s'}]}"
            .formatted(fields, content)
            .replace('\'', '"');
    byte[] answer =
        client
            .post()
            .uri("/v1/chat/completions")
            .contentType(MediaType.APPLICATION_JSON)
            .bodyValue(body)
            .exchange()
            .expectStatus()
            .isEqualTo(status)
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    return Json.read(new String(answer));
  }

  /** A message that makes a prompt of so many tokens. */
  private String prompt(int tokens) {
    String word = " a";
    JsonNode usage = post("'max_tokens':1,", "a" + word.repeat(100), 200).path("usage");
    int more = tokens - usage.path("prompt_tokens").intValue();
    return "a" + word.repeat(100 + more);
  }

  @Test
  void answersInTheWordsOfTheApi() {
    JsonNode completion = post("", "What is 60 - 16?", 200);
    assertThat(completion.path("model").stringValue()).isEqualTo(Nano.NAME);
    assertThat(completion.path("choices").get(0))
        .isEqualTo(
            Json.object(
                """
                {'index':0,'message':{'role':'assistant','content':'60 - 16 = 44','refusal':null},
                 'logprobs':null,'finish_reason':'stop'}"""));
  }

  @Test
  void leavesThePathsOfTheApplicationAlone() {
    client
        .get()
        .uri("/v1/orders")
        .exchange()
        .expectStatus()
        .isOk()
        .expectBody(String.class)
        .isEqualTo("none");
  }

  @Test
  void refusesForeignHosts() {
    client
        .get()
        .uri("/v1/models")
        .header("Host", "evil.example")
        .exchange()
        .expectStatus()
        .isForbidden();
  }

  @Test
  void fillsTheContextToItsLastToken() {
    JsonNode completion = post("'min_tokens':1,", prompt(511), 200);
    assertThat(completion.path("usage").path("prompt_tokens").intValue()).isEqualTo(511);
    assertThat(completion.path("usage").path("total_tokens").intValue()).isEqualTo(512);
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isEqualTo("length");
  }

  @ParameterizedTest
  @ValueSource(ints = {512, 513, 5000})
  void refusesAPromptThatLeavesNoRoomForAnAnswer(int tokens) {
    JsonNode error = post("", prompt(tokens), 400).path("error");
    assertThat(error.path("code").stringValue()).isEqualTo("context_length_exceeded");
    assertThat(error.path("message").stringValue())
        .contains("maximum context length is 512 tokens")
        .contains("resulted in " + tokens + " tokens");
  }

  @Test
  void endsAnAnswerAtTheWindow() {
    JsonNode completion = post("'max_tokens':100,'min_tokens':12,", prompt(500), 200);
    assertThat(completion.path("usage").path("total_tokens").intValue()).isEqualTo(512);
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isEqualTo("length");
  }
}
