package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.spring.Nano;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/** The whole way from a request's body to the model and back. */
@Timeout(300)
class LilyNanoEndpointTest {
  private static final String TOOLS =
      """
      'tools':[{'type':'function','function':{'name':'get_weather',
        'description':'Get the weather in a given city.',
        'parameters':{'type':'object','properties':{'city':{'type':'string','description':'The city'}},
                      'required':['city']}}}]""";

  private static EndpointServer server;

  @BeforeAll
  static void serve() {
    server = EndpointServer.over(Nano.engine(), OpenAiOptions.builder().build());
  }

  @AfterAll
  static void close() {
    server.close();
  }

  private static String body(String content, String fields) {
    return "{'temperature':0,'presence_penalty':0,"
        + fields
        + "'messages':[{'role':'user','content':'"
        + content
        + "'}]}";
  }

  private static String off(String content) {
    return body(content, "'reasoning_effort':'none',");
  }

  private static JsonNode message(JsonNode completion) {
    return completion.path("choices").get(0).path("message");
  }

  private static String streamed(String body) {
    return body.replaceFirst("\\{", "{'stream':true,'stream_options':{'include_usage':true},");
  }

  /** The answer as a whole, after it was compared with its stream. */
  private static JsonNode both(String body) {
    JsonNode completion = server.answer(body);
    SentEvents events = server.events(streamed(body));
    assertThat(events.done()).isTrue();
    assertThat(withoutIds(events.assembled())).isEqualTo(withoutIds(completion.path("choices")));
    assertThat(withoutCached(events.json().getLast().path("usage")))
        .isEqualTo(withoutCached(completion.path("usage")));
    return completion;
  }

  /** What was cached of a prompt depends on the requests before. */
  private static JsonNode withoutCached(JsonNode usage) {
    return ((ObjectNode) usage.deepCopy()).without("prompt_tokens_details");
  }

  /** Each request's calls have ids of their own. */
  private static String withoutIds(JsonNode choices) {
    return choices.toString().replaceAll("\"id\":\"[^\"]+\"", "\"id\":\"\"");
  }

  @Test
  void answersWithoutReasoning() {
    JsonNode completion = both(off("What is 60 - 16?"));
    assertThat(message(completion))
        .isEqualTo(Json.object("{'role':'assistant','content':'60 - 16 = 44','refusal':null}"));
    assertThat(completion.path("model").stringValue()).isEqualTo(Nano.NAME);
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isEqualTo("stop");
  }

  @Test
  void answersInTheFormatAskedFor() {
    String format =
        "'reasoning_effort':'none','response_format':{'type':'json_schema','json_schema':{'name':'sum',"
            + "'schema':{'type':'object','properties':{'result':{'type':'integer','minimum':0}},"
            + "'required':['result'],'additionalProperties':false}}},";
    JsonNode completion = both(body("What is 60 - 16?", format));
    JsonNode answer = Json.read(message(completion).path("content").stringValue());
    assertThat(answer.propertyNames()).containsExactly("result");
    assertThat(answer.path("result").isIntegralNumber()).isTrue();
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isEqualTo("stop");
  }

  @Test
  void reasonsBeforeItAnswersInTheFormatAskedFor() {
    String format =
        "'reasoning_effort':'low','response_format':{'type':'json_schema','json_schema':{"
            + "'schema':{'enum':['yes','no']}}},";
    JsonNode message = message(both(body("What is 477 - 223?", format)));
    assertThat(message.path("reasoning_content").stringValue()).isNotBlank();
    assertThat(message.path("content").stringValue()).isIn("\"yes\"", "\"no\"");
  }

  @Test
  void callsTheToolThatMustBeCalled() {
    String fields = "'reasoning_effort':'none'," + TOOLS + ",'tool_choice':'required',";
    JsonNode completion = both(body("Say hi to Rome.", fields));
    JsonNode call = message(completion).path("tool_calls").get(0).path("function");
    assertThat(call.path("name").stringValue()).isEqualTo("get_weather");
    assertThat(Json.read(call.path("arguments").stringValue()).path("city").isString()).isTrue();
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isEqualTo("tool_calls");
  }

  @Test
  void countsTheTokensOfTheReference() {
    JsonNode usage = server.answer(off("Capital of China? Only the name.")).path("usage");
    assertThat(usage.path("prompt_tokens").intValue()).isEqualTo(20);
    assertThat(usage.path("completion_tokens").intValue()).isEqualTo(3);
    assertThat(usage.path("total_tokens").intValue()).isEqualTo(23);
  }

  @Test
  void answersWithReasoning() {
    JsonNode completion = both(body("What day is before Saturday?", ""));
    assertThat(message(completion))
        .isEqualTo(
            Json.object(
                """
                {'role':'assistant','content':'Friday comes before Saturday.','refusal':null,
                 'reasoning_content':'The days go Friday, Saturday.'}"""));
    assertThat(
            completion
                .path("usage")
                .path("completion_tokens_details")
                .path("reasoning_tokens")
                .intValue())
        .isPositive();
  }

  @Test
  void callsTools() {
    String body =
        "{'temperature':0,'presence_penalty':0,"
            + TOOLS
            + ",'messages':[{'role':'system','content':'You are a helpful assistant with tools.'},"
            + "{'role':'user','content':'What is the weather in Rome and Cairo?'}]}";
    JsonNode completion = both(body);
    JsonNode choice = completion.path("choices").get(0);
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("tool_calls");
    JsonNode calls = choice.path("message").path("tool_calls");
    assertThat(calls.valueStream().map(call -> call.path("function").toString()))
        .containsExactly(
            "{\"name\":\"get_weather\",\"arguments\":\"{\\\"city\\\":\\\"Rome\\\"}\"}",
            "{\"name\":\"get_weather\",\"arguments\":\"{\\\"city\\\":\\\"Cairo\\\"}\"}");
    assertThat(calls.get(0).path("id")).isNotEqualTo(calls.get(1).path("id"));
  }

  @Test
  void endsAtAStopString() {
    JsonNode completion = both(body("What is 60 - 16?", "'reasoning_effort':'none','stop':' = ',"));
    assertThat(message(completion).path("content").stringValue()).isEqualTo("60 - 16");
    assertThat(completion.path("choices").get(0).path("finish_reason").stringValue())
        .isEqualTo("stop");
  }

  @Test
  void repeatsAnAnswerWithItsSeedAlsoBesideOthers() {
    String story = "Tell me a short story.";
    String one =
        "{'reasoning_effort':'none','temperature':1,'seed':42,'max_tokens':24,'messages':[{'role':'user','content':'"
            + story
            + "'}]}";
    JsonNode alone = server.answer(one).path("choices").get(0);
    JsonNode many = server.answer(one.replaceFirst("\\{", "{'n':4,")).path("choices");
    assertThat(many.get(0)).isEqualTo(alone);
    assertThat(many.valueStream().map(choice -> choice.path("message")).distinct().count())
        .isGreaterThan(1);
    assertThat(server.events(streamed(one.replaceFirst("\\{", "{'n':4,"))).assembled())
        .isEqualTo(many);
  }

  @Test
  void reportsLogprobsOfEveryToken() {
    JsonNode completion =
        both(
            body(
                "Capital of China? Only the name.",
                "'reasoning_effort':'none','logprobs':true,'top_logprobs':2,"));
    JsonNode tokens = completion.path("choices").get(0).path("logprobs").path("content");
    assertThat(tokens.size())
        .isEqualTo(completion.path("usage").path("completion_tokens").intValue());
    StringBuilder text = new StringBuilder();
    tokens.forEach(token -> text.append(token.path("token").stringValue()));
    assertThat(text.toString()).startsWith("Beijing");
  }

  @Test
  void refusesAPromptBeyondTheContextWithBothLengths() {
    int contextLength = Nano.engine().model().contextLength();
    byte[] body =
        server
            .post(off("a b ".repeat(contextLength)))
            .expectStatus()
            .isBadRequest()
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    JsonNode error = Json.read(new String(body)).path("error");
    assertThat(error.path("code").stringValue()).isEqualTo("context_length_exceeded");
    assertThat(error.path("message").stringValue()).contains(contextLength + " tokens");
  }

  private static String manyTools(int count) {
    String properties =
        IntStream.range(0, 6)
            .mapToObj(i -> "'p%d':{'type':'string','description':'The value of it'}".formatted(i))
            .collect(Collectors.joining(","));
    return IntStream.range(0, count)
        .mapToObj(
            i ->
                "{'type':'function','function':{'name':'tool_%04d','parameters':{'type':'object','properties':{%s}}}}"
                    .formatted(i, properties))
        .collect(Collectors.joining(",", "'max_tokens':1,'tools':[", "],"));
  }

  @Test
  void showsEveryToolOrRefusesThemAll() {
    int ten = promptTokens(manyTools(10));
    int twenty = promptTokens(manyTools(20));
    assertThat(promptTokens(manyTools(30)) - twenty).isEqualTo(twenty - ten).isGreaterThan(500);

    long steps = Nano.engine().stats().steps();
    byte[] body =
        server
            .post(body("hi", manyTools(4096)))
            .expectStatus()
            .isBadRequest()
            .expectBody()
            .returnResult()
            .getResponseBodyContent();
    JsonNode error = Json.read(new String(body)).path("error");
    assertThat(error.path("code").stringValue()).isEqualTo("context_length_exceeded");
    assertThat(Nano.engine().stats().steps()).isEqualTo(steps);
  }

  private static int promptTokens(String fields) {
    return server.answer(body("hi", fields)).path("usage").path("prompt_tokens").intValue();
  }

  @Test
  void stopsTheEngineWhenTheClientGoesAway() throws Exception {
    long cancelled = Nano.engine().stats().cancelled();
    try (RawConnection connection = server.connect()) {
      connection.post(
          streamed(
              body(
                  "Tell me a story.",
                  "'reasoning_effort':'none','min_tokens':2000,'max_tokens':2000,")));
      connection.readUntil("\"content\":\"", 5);
    }
    await()
        .atMost(Duration.ofSeconds(20))
        .until(
            () ->
                Nano.engine().stats().cancelled() == cancelled + 1
                    && Nano.engine().stats().running() == 0
                    && Nano.engine().stats().kvPagesUsed() == 0);
    assertThat(message(server.answer(off("What is 60 - 16?"))).path("content").stringValue())
        .isEqualTo("60 - 16 = 44");
  }

  @Test
  void aConnectionThatBreaksCostsOthersNothing() throws Exception {
    String story =
        streamed(
            body(
                "Tell me a story.",
                "'reasoning_effort':'none','min_tokens':1000,'max_tokens':1000,"));
    JsonNode alone = server.events(story).assembled();
    long cancelled = Nano.engine().stats().cancelled();
    CompletableFuture<JsonNode> staying;
    try (RawConnection breaking = server.connect()) {
      breaking.post(story.replace("1000", "9000"));
      breaking.readUntil("\"content\":\"", 5);
      staying = CompletableFuture.supplyAsync(() -> server.events(story).assembled());
      await().atMost(Duration.ofSeconds(60)).until(() -> Nano.engine().stats().running() == 2);
    }
    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> Nano.engine().stats().cancelled() == cancelled + 1);
    assertThat(staying.get()).isEqualTo(alone);
  }

  @Test
  void answersManyClientsAtOnce() {
    List<String> answers =
        IntStream.range(0, 12)
            .parallel()
            .mapToObj(_ -> message(server.answer(off("What is 60 - 16?"))))
            .map(message -> message.path("content").stringValue())
            .toList();
    assertThat(answers).hasSize(12).allMatch("60 - 16 = 44"::equals);
  }

  private static final int CLIENTS = 16;

  private record Answered(String id, String choices, int promptTokens, int completionTokens) {
    static Answered of(String id, JsonNode choices, JsonNode usage) {
      return new Answered(
          id,
          withoutIds(choices),
          usage.path("prompt_tokens").intValue(),
          usage.path("completion_tokens").intValue());
    }
  }

  /** Asks the i-th of many questions: half of them with a tool, half of them for a stream. */
  private static Answered ask(int i) {
    List<String> cities = List.of("Rome", "Cairo", "Lima", "Oslo");
    String body =
        i % 4 < 2
            ? body(
                "What is the weather in %s and %s?"
                    .formatted(cities.get(i / 4), cities.get((i / 4 + 1 + i % 4) % 4)),
                TOOLS + ",")
            : off("What is %d - 16?".formatted(60 + i));
    if (i % 2 == 0) {
      JsonNode completion = server.answer(body);
      return Answered.of(
          completion.path("id").stringValue(),
          completion.path("choices"),
          completion.path("usage"));
    }
    SentEvents events = server.events(streamed(body));
    String id = events.json().getFirst().path("id").stringValue();
    assertThat(events.json()).allMatch(chunk -> chunk.path("id").stringValue().equals(id));
    return Answered.of(id, events.assembled(), events.json().getLast().path("usage"));
  }

  @Test
  void givesEachOfManyClientsTheAnswerToItsOwnQuestion() {
    List<Answered> alone = IntStream.range(0, CLIENTS).mapToObj(LilyNanoEndpointTest::ask).toList();
    List<Answered> together;
    try (ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
      List<CompletableFuture<Answered>> asked =
          IntStream.range(0, CLIENTS)
              .mapToObj(i -> CompletableFuture.supplyAsync(() -> ask(i), clients))
              .toList();
      together = asked.stream().map(CompletableFuture::join).toList();
    }
    assertThat(alone).extracting(Answered::choices).doesNotHaveDuplicates();
    assertThat(together).extracting(Answered::id).doesNotHaveDuplicates();
    assertThat(together)
        .usingRecursiveFieldByFieldElementComparatorIgnoringFields("id")
        .isEqualTo(alone);
  }
}
