package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.call;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static dev.lily.spring.openai.ScriptedEngine.failed;
import static dev.lily.spring.openai.ScriptedEngine.thought;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.EngineFailureException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.test.web.reactive.server.WebTestClient;
import tools.jackson.databind.JsonNode;

class ResponsesEndpointTest extends EndpointTest {
  private static final String PATH = "/v1/responses";

  private static WebTestClient.ResponseSpec post(EndpointServer server, String body) {
    return server.postTo(PATH, body.replace('\'', '"'));
  }

  private static JsonNode whole(EndpointServer server, String body) {
    return Json.read(EndpointServer.text(post(server, body).expectStatus().isOk()));
  }

  /** The events of a stream, after their names and numbers were checked. */
  private static List<JsonNode> stream(EndpointServer server, String body) {
    String text =
        EndpointServer.text(
            post(server, body.replaceFirst("\\{", "{'stream':true,")).expectStatus().isOk());
    assertThat(text).endsWith("\n\n").doesNotContain("[DONE]");
    List<JsonNode> events = new ArrayList<>();
    for (String event : text.substring(0, text.length() - 2).split("\n\n", -1)) {
      String[] lines = event.split("\n");
      assertThat(lines).hasSize(2);
      assertThat(lines[0]).startsWith("event: ");
      assertThat(lines[1]).startsWith("data: {");
      JsonNode data = Json.read(lines[1].substring("data: ".length()));
      assertThat(data.path("type").stringValue()).isEqualTo(lines[0].substring("event: ".length()));
      assertThat(data.path("sequence_number").intValue()).isEqualTo(events.size());
      events.add(data);
    }
    return events;
  }

  private static List<String> types(List<JsonNode> events) {
    return events.stream().map(event -> event.path("type").stringValue()).toList();
  }

  private static String withoutIds(JsonNode response) {
    return response.toString().replaceAll("\"id\":\"[a-z]+_[0-9a-f]{32}\"", "\"id\":\"\"");
  }

  @Test
  void answersAsAWhole() {
    EndpointServer server = serve(answer("Hel"), answer("lo"), completed(FinishReason.STOP));
    JsonNode response =
        whole(
            server,
            """
            {'input':'hi','instructions':'Be brief.','temperature':0.5,'metadata':{'a':'b'},
             'max_output_tokens':20}""");
    assertThat(response.path("id").stringValue()).matches("resp_[0-9a-f]{32}");
    assertThat(withoutIds(response))
        .isEqualTo(
            Json.read(
                    """
                    {"id":"","object":"response","created_at":1750000000,"status":"completed",
                     "background":false,"error":null,"incomplete_details":null,
                     "instructions":"Be brief.","max_output_tokens":20,"model":"nano",
                     "output":[{"id":"","type":"message","role":"assistant","content":[
                       {"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}],
                       "status":"completed"}],
                     "parallel_tool_calls":true,"previous_response_id":null,
                     "reasoning":{"effort":null,"summary":null},"store":false,"temperature":0.5,
                     "text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],
                     "top_p":null,"truncation":"disabled",
                     "usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":0},
                       "output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},
                       "total_tokens":12},
                     "metadata":{"a":"b"}}""")
                .toString());
  }

  @Test
  void streamsTypedEventsWhoseItemsAreTheWholeAnswer() {
    EndpointServer server =
        serve(
            thought("I th"),
            thought("ink."),
            answer("Let me "),
            answer("see."),
            call("call_a", "weather", "{'city':'Rome'}"),
            call("call_b", "now", "{}"),
            completed(FinishReason.TOOL_CALLS));
    List<JsonNode> events = stream(server, "{'input':'hi'}");
    assertThat(types(events))
        .containsExactly(
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed");
    JsonNode begun = events.getFirst().path("response");
    assertThat(begun.path("status").stringValue()).isEqualTo("in_progress");
    assertThat(begun.path("output").isEmpty()).isTrue();
    assertThat(begun.path("usage").isNull()).isTrue();
    JsonNode ended = events.getLast().path("response");
    assertThat(ended.path("id")).isEqualTo(begun.path("id"));
    List<JsonNode> done =
        events.stream()
            .filter(event -> event.path("type").stringValue().equals("response.output_item.done"))
            .toList();
    assertThat(done).extracting(e -> e.path("output_index").intValue()).containsExactly(0, 1, 2, 3);
    assertThat(done.stream().map(event -> event.path("item")))
        .containsExactlyElementsOf(ended.path("output"));
    assertThat(withoutIds(ended)).isEqualTo(withoutIds(whole(server, "{'input':'hi'}")));
    assertThat(withoutIds(ended.path("output")))
        .isEqualTo(
            Json.read(
                    """
                    [{"id":"","type":"reasoning","summary":[],
                      "content":[{"type":"reasoning_text","text":"I think."}],"status":"completed"},
                     {"id":"","type":"message","role":"assistant","content":[{"type":"output_text",
                      "text":"Let me see.","annotations":[],"logprobs":[]}],"status":"completed"},
                     {"id":"","type":"function_call","call_id":"call_a","name":"weather",
                      "arguments":"{\\"city\\":\\"Rome\\"}","status":"completed"},
                     {"id":"","type":"function_call","call_id":"call_b","name":"now",
                      "arguments":"{}","status":"completed"}]""")
                .toString());
  }

  @Test
  void givesReasoningAsItsSummaryIfOneIsAskedFor() {
    EndpointServer server = serve(thought("Hm."), answer("So."), completed(FinishReason.STOP));
    String body = "{'input':'hi','reasoning':{'summary':'auto','effort':'low'}}";
    List<JsonNode> events = stream(server, body);
    assertThat(types(events))
        .contains(
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done")
        .doesNotContain("response.reasoning_text.delta");
    JsonNode reasoning = whole(server, body).path("output").get(0);
    assertThat(reasoning.path("summary"))
        .isEqualTo(Json.read("[{\"type\":\"summary_text\",\"text\":\"Hm.\"}]"));
    assertThat(reasoning.path("content").isEmpty()).isTrue();
    assertThat(server.engine().requests.getFirst().thinking()).isTrue();
  }

  @Test
  void saysThatAnAnswerIsIncompleteAndLeavesOutACallThatWasCutOff() {
    EndpointServer server =
        serve(
            answer("Let me"),
            ScriptedEngine.output(new ResponsePart.IncompleteToolCall("<tool_call>")),
            completed(FinishReason.LENGTH));
    JsonNode response = whole(server, "{'input':'hi'}");
    assertThat(response.path("status").stringValue()).isEqualTo("incomplete");
    assertThat(response.path("incomplete_details").path("reason").stringValue())
        .isEqualTo("max_output_tokens");
    assertThat(response.path("output").size()).isEqualTo(1);
    assertThat(response.path("output").get(0).path("status").stringValue()).isEqualTo("incomplete");
    assertThat(types(stream(server, "{'input':'hi'}")).getLast()).isEqualTo("response.incomplete");
  }

  @Test
  void endsAStreamThatFailsWithAFailedResponse() {
    GenerationEvent failure =
        failed(new EngineFailureException("secret", new IllegalStateException()));
    List<JsonNode> events = stream(serve(answer("x"), failure), "{'input':'hi'}");
    assertThat(types(events).getLast()).isEqualTo("response.failed");
    JsonNode response = events.getLast().path("response");
    assertThat(response.path("status").stringValue()).isEqualTo("failed");
    assertThat(response.path("error").path("code").stringValue()).isEqualTo("server_error");
    assertThat(response.toString()).doesNotContain("secret");
    assertThat(error(post(serve(failure), "{'input':'hi'}").expectStatus().isEqualTo(500)))
        .isNotNull();
  }

  @Test
  void doesNotPassAnAnswerOffAsWholeThatTheEngineCancelled() {
    EndpointServer server = serve(answer("x"), completed(FinishReason.CANCELLED));
    post(server, "{'input':'hi'}").expectStatus().isEqualTo(500);
    assertThat(types(stream(server, "{'input':'hi'}")).getLast()).isEqualTo("response.failed");
  }

  @Test
  void tellsWhatTheEngineRefusesInTermsOfTheInput() {
    EndpointServer busy =
        serve(ScriptedEngine.refusing(new EngineBusyException(4, 4, Duration.ofSeconds(2))));
    post(busy, "{'input':'hi','stream':true}")
        .expectStatus()
        .isEqualTo(429)
        .expectHeader()
        .valueEquals("Retry-After", "2");
    EndpointServer small = serve(ScriptedEngine.refusing(new ContextOverflowException(600, 512)));
    JsonNode error = error(post(small, "{'input':'hi'}").expectStatus().isBadRequest());
    assertThat(error.path("param").stringValue()).isEqualTo("input");
    assertThat(error.path("code").stringValue()).isEqualTo("context_length_exceeded");
  }

  @Test
  void storesNothing() {
    EndpointServer server = serve(completed(FinishReason.STOP));
    String id = whole(server, "{'input':'hi'}").path("id").stringValue();
    server.client().get().uri(PATH + "/" + id).exchange().expectStatus().isNotFound();
    server.client().delete().uri(PATH + "/" + id).exchange().expectStatus().isNotFound();
  }
}
