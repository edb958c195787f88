package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.spring.Nano;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.http.HttpStatusCode;
import org.springframework.test.web.reactive.server.EntityExchangeResult;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/**
 * Bodies that users of other servers had trouble with, each as a stream and as a whole. What is not
 * refused is answered, in both ways alike.
 */
@Timeout(300)
class FieldCasesTest {
  private static final int MAX_TOKENS = 12;

  /** Field that is wrong, by case. */
  private static final Map<String, String> REFUSED =
      Map.ofEntries(
          Map.entry("empty-messages/none", "messages"),
          Map.entry("empty-messages/no-content", "messages[0].content"),
          Map.entry("empty-messages/system-only", "messages"),
          Map.entry("empty-messages/messages-null", "messages"),
          Map.entry("empty-messages/messages-string", "messages"),
          Map.entry("developer/unknown-role", "messages[0].role"),
          Map.entry("content-parts/image", "messages[0].content[0]"),
          Map.entry("content-parts/unknown-part", "messages[0].content[0]"),
          Map.entry("history-arguments/cut", "messages[1].tool_calls[0].function.arguments"),
          Map.entry("history-arguments/array", "messages[1].tool_calls[0].function.arguments"),
          Map.entry("history-arguments/string", "messages[1].tool_calls[0].function.arguments"),
          Map.entry("max-tokens/zero", "max_tokens"),
          Map.entry("max-tokens/minus-1", "max_tokens"),
          Map.entry("max-tokens/minus-2", "max_tokens"),
          Map.entry("max-tokens/overflow", "max_tokens"),
          Map.entry("max-tokens/string", "max_tokens"),
          Map.entry("max-tokens/fraction", "max_tokens"),
          Map.entry("n/n0", "n"),
          Map.entry("n/n-neg", "n"),
          Map.entry("n/n-str", "n"),
          Map.entry("sampling/p2", "top_p"),
          Map.entry("sampling/tneg", "temperature"),
          Map.entry("sampling/pp-range", "presence_penalty"),
          Map.entry("logprobs/lp-only-top", "top_logprobs"),
          Map.entry("logprobs/lp-21", "top_logprobs"),
          Map.entry("stop/stop-empty-string", "stop"),
          Map.entry("stop/stop-list-empty-string", "stop"),
          Map.entry("stop/stop-five", "stop"),
          Map.entry("stop/stop-number", "stop"),
          Map.entry("tool-choice/undeclared", "tool_choice"),
          Map.entry("tool-choice/required-no-tools", "tool_choice"),
          Map.entry("tool-choice/tool-duplicate-name", "tools[1].function.name"));

  private static EndpointServer server;

  @BeforeAll
  static void serve() {
    server =
        EndpointServer.over(
            Nano.engine(),
            OpenAiOptions.builder()
                .modelAliases(List.of("lily"))
                .defaults(
                    new OpenAiOptions.Defaults(MAX_TOKENS, 0, null, false, List.of(), null, null))
                .build());
  }

  @AfterAll
  static void close() {
    server.close();
  }

  private static List<JsonNode> cases() throws IOException {
    try (InputStream file =
        FieldCasesTest.class.getResourceAsStream("/field-cases/requests.json")) {
      List<JsonNode> cases = new ArrayList<>();
      JsonMapper.shared().readTree(file).path("cases").forEach(cases::add);
      return cases;
    }
  }

  private static String name(JsonNode fieldCase) {
    return fieldCase.path("group").stringValue() + "/" + fieldCase.path("id").stringValue();
  }

  static Stream<Arguments> named() throws IOException {
    return cases().stream().map(fieldCase -> Arguments.of(name(fieldCase), fieldCase.path("body")));
  }

  @Test
  void knowsEveryCase() throws IOException {
    List<String> names = cases().stream().map(FieldCasesTest::name).toList();
    assertThat(names).hasSize(66).doesNotHaveDuplicates().containsAll(REFUSED.keySet());
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("named")
  void isAnsweredOrRefusedNamingTheField(String name, ObjectNode body) {
    ObjectNode streamed = body.deepCopy().put("stream", true);
    String param = REFUSED.get(name);
    if (param != null) {
      assertRefused(post(body), param);
      assertRefused(post(streamed), param);
      return;
    }
    JsonNode completion = Json.read(text(post(body), 200));
    SentEvents events = SentEvents.of(text(post(streamed), 200));
    assertThat(events.done()).isTrue();
    assertThat(events.assembled()).isEqualTo(completion.path("choices"));
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isIn("stop", "length", "tool_calls");
    check(name, completion);
  }

  private static void check(String name, JsonNode completion) {
    JsonNode choices = completion.path("choices");
    int tokens = completion.path("usage").path("completion_tokens").intValue();
    switch (name) {
      case "max-tokens/null", "max-tokens/absent" ->
          assertThat(tokens).isLessThanOrEqualTo(MAX_TOKENS);
      case "max-tokens/one" -> assertLength(choices, tokens, 1);
      case "max-tokens/both" -> assertLength(choices, tokens, 4);
      case "max-tokens/new-field" -> assertLength(choices, tokens, 5);
      case "n/n2" -> assertThat(choices.size()).isEqualTo(2);
      case "tool-choice/none" ->
          assertThat(choices.get(0).path("message").has("tool_calls")).isFalse();
      case "tool-choice/required", "tool-choice/named" ->
          assertThat(choices.get(0).path("message").path("content").asString("")).isEmpty();
      case "logprobs/lp" -> assertLogprobs(choices.get(0).path("logprobs").path("content"));
      default -> {}
    }
  }

  private static void assertLength(JsonNode choices, int tokens, int expected) {
    assertThat(tokens).isEqualTo(expected);
    assertThat(choices.get(0).path("finish_reason").stringValue()).isEqualTo("length");
  }

  private static void assertLogprobs(JsonNode tokens) {
    assertThat(tokens.size()).isEqualTo(8);
    assertThat(tokens)
        .allSatisfy(
            token -> {
              assertThat(token.path("logprob").doubleValue()).isLessThanOrEqualTo(0);
              JsonNode top = token.path("top_logprobs");
              assertThat(top.size()).isEqualTo(3);
              assertThat(top.get(0).path("bytes")).isEqualTo(token.path("bytes"));
              assertThat(top.valueStream().map(t -> -t.path("logprob").doubleValue())).isSorted();
            });
  }

  private static EntityExchangeResult<byte[]> post(ObjectNode body) {
    return server.postExactly(body.toString()).expectBody().returnResult();
  }

  private static String text(EntityExchangeResult<byte[]> result, int status) {
    String text = new String(result.getResponseBodyContent());
    assertThat(result.getStatus()).as(text).isEqualTo(HttpStatusCode.valueOf(status));
    return text;
  }

  private static void assertRefused(EntityExchangeResult<byte[]> result, String param) {
    JsonNode error = Json.read(text(result, 400)).path("error");
    assertThat(error.propertyNames()).containsExactly("message", "type", "param", "code");
    assertThat(error.path("type").stringValue()).isEqualTo("invalid_request_error");
    assertThat(error.path("param").asString("")).as(error.toString()).isEqualTo(param);
    assertThat(error.path("message").stringValue()).isNotBlank();
  }
}
