package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static dev.lily.spring.openai.ScriptedEngine.failed;
import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.AppenderBase;
import dev.lily.engine.generation.ContextOverflowException;
import dev.lily.engine.generation.DeadlineExceededException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.engine.generation.EngineClosedException;
import dev.lily.engine.generation.EngineFailureException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.InvalidRequestException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.http.MediaType;
import tools.jackson.databind.JsonNode;

class ChatCompletionErrorTest extends EndpointTest {
  private static final String MESSAGES = "'messages':[{'role':'user','content':'hi'}]";
  private static final String WHOLE = "{" + MESSAGES + "}";
  private static final String STREAM = "{'stream':true," + MESSAGES + "}";

  @Test
  void tellsWhenToRetryIfTheEngineIsBusy() {
    EndpointServer server =
        serve(ScriptedEngine.refusing(new EngineBusyException(4, 4, Duration.ofMillis(2300))));
    for (String body : List.of(WHOLE, STREAM)) {
      JsonNode error =
          error(
              server
                  .post(body)
                  .expectStatus()
                  .isEqualTo(429)
                  .expectHeader()
                  .valueEquals("Retry-After", "3"));
      assertThat(error.path("code").stringValue()).isEqualTo("rate_limit_exceeded");
    }
  }

  @Test
  void takesAllChoicesOrNone() throws Exception {
    ScriptedEngine engine =
        ScriptedEngine.of(
            request -> {
              if (!request.sampling().seed().equals(1L)) {
                throw new EngineBusyException(4, 4, Duration.ofSeconds(1));
              }
              return List.of();
            });
    serve(engine).post("{'n':2,'seed':1," + MESSAGES + "}").expectStatus().isEqualTo(429);
    assertThat(engine.sessions).hasSize(1);
    assertThat(engine.sessions.getFirst().cancelled).isTrue();
  }

  @Test
  void givesBothLengthsIfThePromptIsTooLong() {
    EndpointServer server = serve(ScriptedEngine.refusing(new ContextOverflowException(5000, 512)));
    for (String body : List.of(WHOLE, STREAM)) {
      JsonNode error = error(server.post(body).expectStatus().isBadRequest());
      assertThat(error.path("code").stringValue()).isEqualTo("context_length_exceeded");
      assertThat(error.path("param").stringValue()).isEqualTo("messages");
      assertThat(error.path("message").stringValue())
          .contains("maximum context length is 512 tokens")
          .contains("5000 tokens");
    }
  }

  @Test
  void namesTheFieldThatTheEngineRefuses() {
    EndpointServer server =
        serve(
            ScriptedEngine.refusing(
                new InvalidRequestException("messages[0].content[1]", "Unsupported content type")));
    JsonNode error = error(server.post(WHOLE).expectStatus().isBadRequest());
    assertThat(error)
        .isEqualTo(
            Json.object(
                """
                {'message':'Unsupported content type','type':'invalid_request_error',
                 'param':'messages[0].content[1]','code':'invalid_value'}"""));
  }

  @Test
  void givesAStatusOfItsOwnToAFailureBeforeTheFirstToken() {
    EndpointServer closing = serve(failed(new EngineClosedException("closing secret")));
    EndpointServer late =
        serve(failed(new DeadlineExceededException("secret", Duration.ofSeconds(1))));
    EndpointServer broken =
        serve(failed(new EngineFailureException("secret", new IllegalStateException("secret"))));
    for (String body : List.of(WHOLE, STREAM)) {
      JsonNode unavailable =
          error(
              closing
                  .post(body)
                  .expectStatus()
                  .isEqualTo(503)
                  .expectHeader()
                  .exists("Retry-After"));
      assertThat(unavailable.path("message").stringValue()).doesNotContain("secret");
      JsonNode timeout =
          error(late.post(body).expectStatus().isEqualTo(503).expectHeader().exists("Retry-After"));
      assertThat(timeout.path("code").stringValue()).isEqualTo("timeout");
      JsonNode internal = error(broken.post(body).expectStatus().isEqualTo(500));
      assertThat(internal.path("type").stringValue()).isEqualTo("server_error");
      assertThat(internal.path("message").stringValue()).doesNotContain("secret");
    }
  }

  @Test
  void endsAStreamThatFailsLaterWithOneErrorAndNoDone() {
    SentEvents events =
        serve(
                answer("x"),
                failed(new EngineFailureException("secret", new IllegalStateException("secret"))))
            .events(STREAM);
    assertThat(events.done()).isFalse();
    assertThat(events.choices()).allMatch(choice -> choice.path("finish_reason").isNull());
    JsonNode last = events.json().getLast();
    assertThat(last.propertyNames()).containsExactly("error");
    assertThat(last.path("error").propertyNames())
        .containsExactly("message", "type", "param", "code");
    assertThat(last.path("error").path("type").stringValue()).isEqualTo("server_error");
    assertThat(last.toString()).doesNotContain("secret");
  }

  /** Everything that is logged at info or above. */
  private static final class Log extends AppenderBase<ILoggingEvent> implements AutoCloseable {
    final List<ILoggingEvent> events = new CopyOnWriteArrayList<>();
    private final Logger root = (Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);

    Log() {
      start();
      root.addAppender(this);
    }

    @Override
    protected void append(ILoggingEvent event) {
      if (event.getLevel().isGreaterOrEqual(Level.INFO)) {
        events.add(event);
      }
    }

    @Override
    public void close() {
      root.detachAppender(this);
    }
  }

  private static SentEvents failedStream(EndpointServer server, String key) {
    return SentEvents.of(
        new String(
            server
                .client()
                .post()
                .uri("/v1/chat/completions")
                .header("Authorization", "Bearer " + key)
                .contentType(MediaType.APPLICATION_JSON)
                .bodyValue(STREAM.replace('\'', '"').replace("hi", "open sesame"))
                .exchange()
                .expectBody()
                .returnResult()
                .getResponseBodyContent()));
  }

  @Test
  void logsAFailedStreamUnderItsIdWithNeitherPromptNorKey() {
    ScriptedEngine engine =
        ScriptedEngine.playing(
            answer("x"),
            failed(new EngineFailureException("A step", new IllegalStateException("lost"))));
    EndpointServer server =
        serve(engine, OpenAiOptions.builder().apiKeys(List.of("sesame-key")).build());
    try (Log log = new Log()) {
      SentEvents events = failedStream(server, "sesame-key");
      String id = events.json().getFirst().path("id").stringValue();
      assertThat(engine.requests).hasSize(1);
      assertThat(log.events)
          .filteredOn(event -> event.getLevel() == Level.ERROR)
          .singleElement()
          .satisfies(
              event -> {
                assertThat(event.getFormattedMessage()).contains(id);
                assertThat(event.getThrowableProxy().getCause().getMessage()).isEqualTo("lost");
              });
      assertThat(log.events)
          .noneMatch(event -> event.getFormattedMessage().contains("sesame"))
          .noneMatch(
              event ->
                  event.getThrowableProxy() != null
                      && ThrowableProxyUtil.asString(event.getThrowableProxy()).contains("sesame"));
    }
  }

  @Test
  void doesNotPassAnAnswerOffAsWholeThatTheEngineCancelled() {
    EndpointServer server = serve(answer("x"), completed(FinishReason.CANCELLED));
    assertThat(error(server.post(WHOLE).expectStatus().isEqualTo(500)).path("type").stringValue())
        .isEqualTo("server_error");
    SentEvents events = server.events(STREAM);
    assertThat(events.done()).isFalse();
    assertThat(events.json().getLast().path("error").path("type").stringValue())
        .isEqualTo("server_error");
  }

  @Test
  void endsTheOtherChoicesIfOneFails() {
    ScriptedEngine engine =
        ScriptedEngine.of(
            request ->
                request.sampling().seed().equals(1L)
                    ? List.of(answer("y"))
                    : List.of(answer("x"), failed(new EngineClosedException("closing"))));
    SentEvents events = serve(engine).events("{'n':2,'seed':1,'stream':true," + MESSAGES + "}");
    assertThat(events.done()).isFalse();
    assertThat(events.json().getLast().path("error").path("code").stringValue())
        .isEqualTo("service_unavailable");
    assertThat(engine.sessions.getFirst().cancelled).isTrue();
  }
}
