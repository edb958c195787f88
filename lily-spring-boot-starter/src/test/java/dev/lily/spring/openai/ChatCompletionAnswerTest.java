package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.call;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static dev.lily.spring.openai.ScriptedEngine.output;
import static dev.lily.spring.openai.ScriptedEngine.thought;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.TokenLogprob;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

class ChatCompletionAnswerTest extends EndpointTest {
  private static final String MESSAGES = "'messages':[{'role':'user','content':'hi'}]";
  private static final String WHOLE = "{" + MESSAGES + "}";
  private static final String STREAM = "{'stream':true," + MESSAGES + "}";

  @Test
  void answersAsAWhole() {
    EndpointServer server = serve(answer("Hel"), answer("lo"), completed(FinishReason.STOP));
    JsonNode completion = server.answer(WHOLE);
    assertThat(completion.path("id").stringValue()).matches("chatcmpl-[0-9a-f]{32}");
    assertThat(completion.path("id")).isNotEqualTo(server.answer(WHOLE).path("id"));
    assertThat(completion.propertyNames())
        .containsExactly("id", "object", "created", "model", "choices", "usage");
    assertThat(completion.path("object").stringValue()).isEqualTo("chat.completion");
    assertThat(completion.path("created").longValue()).isEqualTo(EndpointServer.CREATED);
    assertThat(completion.path("model").stringValue()).isEqualTo(EndpointServer.MODEL);
    assertThat(completion.path("choices").get(0))
        .isEqualTo(
            Json.object(
                """
                {'index':0,'message':{'role':'assistant','content':'Hello','refusal':null},
                 'logprobs':null,'finish_reason':'stop'}"""));
    assertThat(completion.path("usage"))
        .isEqualTo(
            Json.object(
                """
                {'prompt_tokens':7,'completion_tokens':5,'total_tokens':12,
                 'prompt_tokens_details':{'cached_tokens':3},
                 'completion_tokens_details':{'reasoning_tokens':2}}"""));
  }

  @Test
  void namesTheFieldsThatHadNoEffect() {
    EndpointServer server = serve(answer("Hello"), completed(FinishReason.STOP));
    for (String stream : List.of("", "'stream':true,")) {
      assertThat(
              ignoredFields(
                  server,
                  "{"
                      + stream
                      + "'user':'u','guided_grammar':'g','seed':1,'thinking_budget':null,'a\\r\\nb':1,"
                      + MESSAGES
                      + "}"))
          .isEqualTo("user, guided_grammar, ?");
    }
    assertThat(ignoredFields(server, WHOLE)).isNull();
    StringBuilder many = new StringBuilder("{");
    for (int i = 0; i < 40; i++) {
      many.append("'f").append(i).append("':1,");
    }
    assertThat(ignoredFields(server, many + MESSAGES + "}"))
        .startsWith("f0, ")
        .endsWith("f31, ...");
  }

  private static @Nullable String ignoredFields(EndpointServer server, String body) {
    return server
        .post(body)
        .expectStatus()
        .isOk()
        .expectBody()
        .returnResult()
        .getResponseHeaders()
        .getFirst("x-ignored-fields");
  }

  @Test
  void answersPieceByPiece() {
    SentEvents events =
        serve(
                new GenerationEvent.PromptProgress(3, 7),
                answer(" Hel"),
                answer("lo\n\n"),
                completed(FinishReason.STOP))
            .events(STREAM);
    assertThat(events.done()).isTrue();
    assertThat(events.heartbeats()).isZero();
    JsonNode id = events.json().getFirst().path("id");
    assertThat(events.json())
        .allSatisfy(
            chunk -> {
              assertThat(chunk.propertyNames())
                  .containsExactly("id", "object", "created", "model", "choices");
              assertThat(chunk.path("id")).isEqualTo(id);
              assertThat(chunk.path("object").stringValue()).isEqualTo("chat.completion.chunk");
              assertThat(chunk.path("created").longValue()).isEqualTo(EndpointServer.CREATED);
              assertThat(chunk.path("model").stringValue()).isEqualTo(EndpointServer.MODEL);
            });
    assertThat(events.choices())
        .containsExactly(
            Json.object(
                "{'index':0,'delta':{'role':'assistant','content':''},'logprobs':null,'finish_reason':null}"),
            Json.object(
                "{'index':0,'delta':{'content':' Hel'},'logprobs':null,'finish_reason':null}"),
            Json.object(
                "{'index':0,'delta':{'content':'lo\\n\\n'},'logprobs':null,'finish_reason':null}"),
            Json.object("{'index':0,'delta':{},'logprobs':null,'finish_reason':'stop'}"));
  }

  @Test
  void tellsProxiesNotToCollectOrKeepAStream() {
    serve(completed(FinishReason.STOP))
        .post(STREAM)
        .expectHeader()
        .valueEquals("Cache-Control", "no-cache")
        .expectHeader()
        .valueEquals("X-Accel-Buffering", "no");
  }

  @Test
  void sendsUsageInAStreamOnlyIfAsked() {
    EndpointServer server = serve(answer("x"), completed(FinishReason.STOP));
    for (String options : List.of("", "'stream_options':{'include_usage':false},")) {
      SentEvents events = server.events("{'stream':true," + options + MESSAGES + "}");
      assertThat(events.json()).noneMatch(chunk -> chunk.path("choices").isEmpty());
      assertThat(events.json()).noneMatch(chunk -> chunk.has("usage"));
    }
    SentEvents events =
        server.events("{'stream':true,'stream_options':{'include_usage':true}," + MESSAGES + "}");
    assertThat(events.done()).isTrue();
    assertThat(events.json().getLast().path("choices")).isEqualTo(Json.array());
    assertThat(events.json().getLast().path("usage")).isEqualTo(server.answer(WHOLE).path("usage"));
    assertThat(events.json().subList(0, events.json().size() - 1))
        .noneMatch(chunk -> chunk.has("usage"));
  }

  @Test
  void keepsReasoningApartFromTheAnswer() {
    EndpointServer server =
        serve(thought("I th"), thought("ink."), answer("So."), completed(FinishReason.STOP));
    JsonNode choice = server.answer(WHOLE).path("choices").get(0);
    assertThat(choice.path("message"))
        .isEqualTo(
            Json.object(
                "{'role':'assistant','content':'So.','refusal':null,'reasoning_content':'I think.'}"));
    SentEvents events = server.events(STREAM);
    assertThat(events.choices().get(1).path("delta"))
        .isEqualTo(Json.object("{'reasoning_content':'I th'}"));
    assertThat(events.assembled()).containsExactly(choice);
  }

  @Test
  void givesAThoughtCutByTheLimitAsReasoningOnly() {
    EndpointServer server =
        serve(thought("First I consider the train"), completed(FinishReason.LENGTH));
    JsonNode choice = server.answer(WHOLE).path("choices").get(0);
    assertThat(choice.path("message").path("content").stringValue()).isEmpty();
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("length");
    assertThat(server.events(STREAM).assembled()).containsExactly(choice);
  }

  @Test
  void givesToolCallsWithRisingIndexesAndTextBetweenThem() {
    EndpointServer server =
        serve(
            answer("Let me see."),
            call("call_a", "weather", "{'city':'Rome','days':[1,2.5,null]}"),
            answer("And"),
            call("call_b", "now", "{}"),
            completed(FinishReason.TOOL_CALLS));
    JsonNode choice = server.answer(WHOLE).path("choices").get(0);
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("tool_calls");
    assertThat(choice.path("message").path("content").stringValue()).isEqualTo("Let me see.And");
    assertThat(choice.path("message").path("tool_calls").get(0))
        .isEqualTo(
            Json.read(
                """
                {"id":"call_a","type":"function","function":{"name":"weather",
                 "arguments":"{\\"city\\":\\"Rome\\",\\"days\\":[1,2.5,null]}"}}"""));
    assertThat(choice.path("message").path("tool_calls").get(1))
        .isEqualTo(
            Json.read(
                """
                {"id":"call_b","type":"function","function":{"name":"now","arguments":"{}"}}"""));
    SentEvents events = server.events(STREAM);
    assertThat(events.assembled()).containsExactly(choice);
    assertThat(events.choices())
        .filteredOn(chunk -> chunk.path("delta").has("content"))
        .noneMatch(chunk -> chunk.path("delta").has("tool_calls"));
    assertThat(events.choices().get(2).path("delta").path("tool_calls").get(0))
        .isEqualTo(
            Json.object(
                "{'index':0,'id':'call_a','type':'function','function':{'name':'weather','arguments':''}}"));
  }

  @Test
  void givesNoContentBesideToolCallsOnly() {
    EndpointServer server = serve(call("call_a", "now", "{}"), completed(FinishReason.TOOL_CALLS));
    JsonNode choice = server.answer(WHOLE).path("choices").get(0);
    assertThat(choice.path("message").path("content").isNull()).isTrue();
    assertThat(server.events(STREAM).assembled()).containsExactly(choice);
  }

  @Test
  void leavesOutACallThatTheLimitCutOff() {
    EndpointServer server =
        serve(
            call("call_a", "now", "{}"),
            output(new ResponsePart.IncompleteToolCall("<tool_call>\n<function=now")),
            completed(FinishReason.LENGTH));
    JsonNode choice = server.answer(WHOLE).path("choices").get(0);
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("length");
    assertThat(choice.path("message").path("tool_calls").size()).isEqualTo(1);
    assertThat(choice.path("message").path("content").isNull()).isTrue();
    assertThat(server.events(STREAM).assembled()).containsExactly(choice);
  }

  @Test
  void reportsLogprobsOfEveryTokenAlsoOfOnesWithoutText() {
    TokenLogprob half = new TokenLogprob(3, new byte[] {(byte) 0xc3}, -0.25f, List.of());
    TokenLogprob other = new TokenLogprob(4, "b".getBytes(), Float.NEGATIVE_INFINITY, List.of());
    EndpointServer server =
        serve(
            new GenerationEvent.Output(
                List.of(),
                List.of(new TokenLogprob(3, half.bytes(), -0.25f, List.of(half, other)))),
            new GenerationEvent.Output(
                List.of(new ResponsePart.AnswerText("é"), new ResponsePart.AnswerText("!")),
                List.of(new TokenLogprob(5, new byte[] {(byte) 0xa9}, 0f, List.of()))),
            completed(FinishReason.LENGTH));
    String asked = "'logprobs':true,'top_logprobs':2,";
    JsonNode choice = server.answer("{" + asked + MESSAGES + "}").path("choices").get(0);
    assertThat(choice.path("logprobs"))
        .isEqualTo(
            Json.object(
                """
                {'content':[
                  {'token':'\ufffd','logprob':-0.25,'bytes':[195],'top_logprobs':[
                    {'token':'\ufffd','logprob':-0.25,'bytes':[195]},
                    {'token':'b','logprob':-9999.0,'bytes':[98]}]},
                  {'token':'\ufffd','logprob':0.0,'bytes':[169],'top_logprobs':[]}],
                 'refusal':null}"""));
    assertThat(server.events("{'stream':true," + asked + MESSAGES + "}").assembled())
        .containsExactly(choice);
    assertThat(server.engine().requests.getFirst().topLogprobs()).isEqualTo(2);
  }

  @Test
  void answersSeveralChoices() {
    ScriptedEngine engine =
        ScriptedEngine.of(
            request ->
                List.of(
                    answer("seed " + request.sampling().seed()),
                    answer("."),
                    completed(FinishReason.STOP)));
    EndpointServer server = serve(engine);
    JsonNode completion = server.answer("{'n':3,'seed':1," + MESSAGES + "}");
    JsonNode choices = completion.path("choices");
    assertThat(choices.size()).isEqualTo(3);
    assertThat(choices.get(0).path("message").path("content").stringValue()).isEqualTo("seed 1.");
    assertThat(choices.valueStream().map(c -> c.path("message").path("content")).distinct())
        .hasSize(3);
    assertThat(completion.path("usage"))
        .isEqualTo(
            Json.object(
                """
                {'prompt_tokens':7,'completion_tokens':15,'total_tokens':22,
                 'prompt_tokens_details':{'cached_tokens':3},
                 'completion_tokens_details':{'reasoning_tokens':6}}"""));
    SentEvents events =
        server.events(
            "{'n':3,'seed':1,'stream':true,'stream_options':{'include_usage':true},"
                + MESSAGES
                + "}");
    assertThat(events.done()).isTrue();
    assertThat(events.assembled()).isEqualTo(choices);
    assertThat(events.json().getLast().path("usage")).isEqualTo(completion.path("usage"));
    assertThat(server.recorded).hasSize(6);
  }

  @Test
  void recordsUsageAndTimings() {
    EndpointServer server = serve(answer("x"), completed(FinishReason.STOP));
    server.answer(WHOLE);
    assertThat(server.recorded)
        .containsExactly(new EndpointServer.Recorded(ScriptedEngine.USAGE, ScriptedEngine.TIMINGS));
  }

  @Test
  void submitsNeitherOnAnEventLoopNorOnTheEngineThread() {
    EndpointServer server = serve(answer("x"), completed(FinishReason.STOP));
    server.answer(WHOLE);
    server.events(STREAM);
    assertThat(server.engine().submittingThreads)
        .hasSize(2)
        .allMatch(name -> name.startsWith(EndpointServer.SCHEDULER));
  }

  @Test
  void sendsHeartbeatsWhereverItHasNothingElseToSend() throws Exception {
    ScriptedEngine engine = ScriptedEngine.stepwise(answer("x"), completed(FinishReason.STOP));
    EndpointServer server =
        serve(engine, OpenAiOptions.builder().heartbeat(Duration.ofMillis(20)).build());
    try (RawConnection connection = server.connect()) {
      connection.post(STREAM);
      connection.readUntil(": heartbeat\n\n");
      assertThat(connection.received()).startsWith("HTTP/1.1 200 OK").doesNotContain("data:");
      connection.readUntil(": heartbeat\n\n", 3);
      engine.step();
      connection.readUntil("\"content\":\"x\"");
      // For instance while the model writes a call, which is sent whole.
      connection.readUntil(": heartbeat\n\n", connection.count(": heartbeat\n\n") + 2);
      engine.step();
      connection.readUntil("data: [DONE]\n\n");
      assertThat(connection.count("\"content\":\"x\"")).isEqualTo(1);
      assertThat(connection.count("\"finish_reason\":\"stop\"")).isEqualTo(1);
    }
  }
}
