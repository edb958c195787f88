package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationException;
import dev.lily.spring.ScriptedChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import dev.lily.spring.ai.Overflow;
import dev.lily.spring.ai.OverflowPolicy;
import dev.lily.spring.ai.OverflowingRequests;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.MediaType;
import org.springframework.test.web.reactive.server.WebTestClient;
import reactor.core.publisher.Flux;
import tools.jackson.databind.JsonNode;

/** Requests of the endpoint that another chat model answers. */
@Timeout(60)
class OverflowEndpointTest {
  private static final EngineBusyException BUSY =
      new EngineBusyException(4, 4, Duration.ofSeconds(3));
  private static final String HI = "'messages':[{'role':'user','content':'hi'}]";
  private static final String WHOLE = "{" + HI + "}";
  private static final String STREAM =
      "{'stream':true,'stream_options':{'include_usage':true}," + HI + "}";

  private final List<AutoCloseable> open = new ArrayList<>();
  private final ScriptedChatModel cluster = ScriptedChatModel.saying("far ", "away");

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable closeable : open) {
      closeable.close();
    }
  }

  private EndpointServer serve(
      ScriptedEngine engine, ScriptedChatModel other, OverflowPolicy... policies) {
    Overflow overflow =
        Overflow.builder(LilyChatOptions.builder().build(), other, "cluster")
            .policies(List.of(policies))
            .build();
    EndpointServer server =
        EndpointServer.over(
            engine, OpenAiOptions.builder().build(), new OverflowingRequests(overflow));
    open.add(server);
    open.add(engine);
    return server;
  }

  private EndpointServer refusing(GenerationException refusal) {
    return serve(ScriptedEngine.refusing(refusal), cluster);
  }

  private static WebTestClient.ResponseSpec postLocalOnly(
      EndpointServer server, String body, String value) {
    return server
        .client()
        .post()
        .uri("/v1/chat/completions")
        .contentType(MediaType.APPLICATION_JSON)
        .header("X-Lily-Local-Only", value)
        .bodyValue(body.replace('\'', '"'))
        .exchange();
  }

  @Test
  void answersByTheOtherModelWhenTheQueueIsFull() {
    EndpointServer server = refusing(BUSY);
    JsonNode answer = server.answer(WHOLE);
    assertThat(answer.path("model").stringValue()).isEqualTo(ScriptedChatModel.MODEL);
    JsonNode choice = answer.path("choices").path(0);
    assertThat(choice.path("message").path("content").stringValue()).isEqualTo("far away");
    assertThat(choice.path("finish_reason").stringValue()).isEqualTo("stop");
    assertThat(answer.path("usage").path("total_tokens").intValue()).isEqualTo(7);
    assertThat(server.recorded).isEmpty();
  }

  @Test
  void streamsTheOtherModelsAnswerWhenTheQueueIsFull() {
    SentEvents events = refusing(BUSY).events(STREAM);
    assertThat(events.json())
        .allSatisfy(
            chunk ->
                assertThat(chunk.path("model").stringValue()).isEqualTo(ScriptedChatModel.MODEL));
    assertThat(events.json())
        .extracting(
            chunk -> chunk.path("choices").path(0).path("delta").path("content").asString(""))
        .contains("far ", "away");
    assertThat(events.json().getLast().path("usage").path("total_tokens").intValue()).isEqualTo(7);
  }

  @Test
  void answersByTheOtherModelWhenThePromptIsTooLong() {
    assertThat(
            refusing(new ContextOverflowException(600, 512))
                .answer(WHOLE)
                .path("model")
                .stringValue())
        .isEqualTo(ScriptedChatModel.MODEL);
  }

  @Test
  void answersResponsesByTheOtherModel() {
    JsonNode answer =
        Json.read(
            EndpointServer.text(
                refusing(BUSY)
                    .postTo("/v1/responses", "{\"input\":\"hi\"}")
                    .expectStatus()
                    .isOk()));
    assertThat(answer.path("model").stringValue()).isEqualTo(ScriptedChatModel.MODEL);
    assertThat(answer.path("output").toString()).contains("far away");
  }

  @ParameterizedTest
  @ValueSource(strings = {WHOLE, STREAM})
  void refusesWhatIsLocalOnly(String body) {
    WebTestClient.ResponseSpec response = postLocalOnly(refusing(BUSY), body, "true");
    response.expectStatus().isEqualTo(429).expectHeader().valueEquals("Retry-After", "3");
    assertThat(EndpointTest.error(response).path("code").stringValue())
        .isEqualTo("rate_limit_exceeded");
    assertThat(cluster.prompts).isEmpty();
  }

  @Test
  void keepsWhatIsLocalOnlyFromPolicies() {
    ScriptedEngine engine = ScriptedEngine.playing(answer("here"), completed(FinishReason.STOP));
    EndpointServer server = serve(engine, cluster, prompt -> true);
    JsonNode answer =
        Json.read(EndpointServer.text(postLocalOnly(server, WHOLE, "true").expectStatus().isOk()));
    assertThat(answer.path("model").stringValue()).isEqualTo(EndpointServer.MODEL);
    assertThat(server.answer(WHOLE).path("model").stringValue()).isEqualTo(ScriptedChatModel.MODEL);
    assertThat(engine.requests).hasSize(1);
  }

  @Test
  void takesFalseForPermission() {
    postLocalOnly(refusing(BUSY), WHOLE, "false").expectStatus().isOk();
  }

  @ParameterizedTest
  @ValueSource(strings = {"yes", "1", "TRUE", ""})
  void doesNotGuessWhatAMarkMeans(String value) {
    WebTestClient.ResponseSpec response = postLocalOnly(refusing(BUSY), WHOLE, value);
    response.expectStatus().isBadRequest();
    assertThat(EndpointTest.error(response).path("param").stringValue())
        .isEqualTo("X-Lily-Local-Only");
    assertThat(cluster.prompts).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "'n':2",
        "'seed':1",
        "'min_p':0.1",
        "'logprobs':true",
        "'reasoning_effort':'none'",
        "'response_format':{'type':'json_object'}",
        "'logit_bias':{'5':1}"
      })
  void refusesWhatOnlyLilyCanDo(String field) {
    refusing(BUSY).post("{" + field + "," + HI + "}").expectStatus().isEqualTo(429);
    assertThat(cluster.prompts).isEmpty();
  }

  @Test
  void refusesToContinueTexts() {
    refusing(BUSY).postTo("/v1/completions", "{\"prompt\":\"Once\"}").expectStatus().isEqualTo(429);
    assertThat(cluster.prompts).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {WHOLE, STREAM})
  void saysThatTheOtherModelFailed(String body) {
    ScriptedChatModel failing =
        ScriptedChatModel.streaming(Flux.error(new IllegalStateException("secret detail")));
    WebTestClient.ResponseSpec response = serve(ScriptedEngine.refusing(BUSY), failing).post(body);
    response.expectStatus().isEqualTo(502);
    JsonNode error = EndpointTest.error(response);
    assertThat(error.path("code").stringValue()).isEqualTo("overflow_failed");
    assertThat(error.toString()).doesNotContain("secret");
  }

  @Test
  void endsAStreamInWhichTheOtherModelFailsWithAnError() {
    ScriptedChatModel failing =
        ScriptedChatModel.streaming(
            Flux.concat(
                Flux.just(ScriptedChatModel.text("one")),
                Flux.error(new IllegalStateException("secret detail"))));
    SentEvents events = serve(ScriptedEngine.refusing(BUSY), failing).events(STREAM);
    assertThat(events.json().getLast().path("error").path("code").stringValue())
        .isEqualTo("overflow_failed");
  }

  @Test
  void cancelsTheOtherModelWhenTheClientGoesAway() throws Exception {
    ScriptedChatModel endless =
        ScriptedChatModel.streaming(
            Flux.concat(Flux.just(ScriptedChatModel.text("one")), Flux.never()));
    EndpointServer server = serve(ScriptedEngine.refusing(BUSY), endless);
    try (RawConnection connection = server.connect()) {
      connection.post(STREAM);
      await().until(() -> !endless.prompts.isEmpty());
    }
    await().until(() -> endless.cancellations.get() == 1);
  }
}
