package dev.lily.spring.openai;

import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import dev.lily.engine.tokenizer.Tokenizer;
import dev.lily.spring.Nano;
import dev.lily.spring.RequestOverflow;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.HttpHandler;
import org.springframework.http.server.reactive.ReactorHttpHandlerAdapter;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.reactive.function.server.HandlerStrategies;
import org.springframework.web.reactive.function.server.RouterFunctions;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.netty.DisposableServer;
import reactor.netty.http.server.HttpServer;
import tools.jackson.databind.JsonNode;

/** The endpoint over a scripted engine, on a real server at a loopback port. */
final class EndpointServer implements AutoCloseable {
  static final String MODEL = "nano";
  static final long CREATED = 1_750_000_000;
  static final int CONTEXT_LENGTH = 512;
  static final Tokenizer TOKENIZER = Tokenizer.read(Nano.DIRECTORY);
  static final String SCHEDULER = "endpoint";

  record Recorded(Usage usage, Timings timings) {}

  final List<Recorded> recorded = new CopyOnWriteArrayList<>();
  private final Scheduler scheduler = Schedulers.newBoundedElastic(4, 100, SCHEDULER);
  private final DisposableServer server;
  private final GenerationSubmitter engine;

  private EndpointServer(
      String model, GenerationSubmitter engine, OpenAiOptions options, RequestOverflow overflow) {
    this.engine = engine;
    HttpHandler handler =
        RouterFunctions.toHttpHandler(
            OpenAiEndpoint.routes(
                new ServedModel(model, CONTEXT_LENGTH, TOKENIZER),
                new AnswerSource(
                    model,
                    engine,
                    (usage, timings) -> recorded.add(new Recorded(usage, timings)),
                    overflow),
                options,
                scheduler,
                () -> Instant.ofEpochSecond(CREATED)),
            HandlerStrategies.builder().webFilter(OpenAiEndpoint.originFilter(options)).build());
    server =
        HttpServer.create()
            .host("127.0.0.1")
            .port(0)
            .handle(new ReactorHttpHandlerAdapter(handler))
            .bindNow();
  }

  static EndpointServer over(ScriptedEngine engine, OpenAiOptions options) {
    return over(engine, options, RequestOverflow.NONE);
  }

  static EndpointServer over(
      ScriptedEngine engine, OpenAiOptions options, RequestOverflow overflow) {
    return new EndpointServer(MODEL, engine, options, overflow);
  }

  static EndpointServer over(LilyEngine engine, OpenAiOptions options) {
    return new EndpointServer(engine.model().name(), engine::submit, options, RequestOverflow.NONE);
  }

  /** The scripted engine. */
  ScriptedEngine engine() {
    return (ScriptedEngine) engine;
  }

  int port() {
    return server.port();
  }

  WebTestClient client() {
    return WebTestClient.bindToServer()
        .baseUrl("http://127.0.0.1:" + port())
        .responseTimeout(Duration.ofMinutes(2))
        .codecs(codecs -> codecs.defaultCodecs().maxInMemorySize(1 << 24))
        .build();
  }

  /** Posts a chat completion; single quotes may stand for double ones. */
  WebTestClient.ResponseSpec post(String body) {
    return postExactly(body.replace('\'', '"'));
  }

  WebTestClient.ResponseSpec postExactly(String body) {
    return postTo("/v1/chat/completions", body);
  }

  /** Posts a body as it is. */
  WebTestClient.ResponseSpec postTo(String path, String body) {
    return client()
        .post()
        .uri(path)
        .contentType(MediaType.APPLICATION_JSON)
        .bodyValue(body)
        .exchange();
  }

  /** The whole answer to a chat completion. */
  JsonNode answer(String body) {
    return Json.read(text(post(body).expectStatus().isOk()));
  }

  /** The whole answer to a chat completion of which nothing is replaced. */
  JsonNode answerExactly(String body) {
    return Json.read(text(postExactly(body).expectStatus().isOk()));
  }

  /** The events of the answer to a chat completion. */
  SentEvents events(String body) {
    return SentEvents.of(
        text(
            post(body)
                .expectStatus()
                .isOk()
                .expectHeader()
                .contentType(MediaType.TEXT_EVENT_STREAM)));
  }

  static String text(WebTestClient.ResponseSpec response) {
    byte[] body = response.expectBody().returnResult().getResponseBodyContent();
    return new String(body, StandardCharsets.UTF_8);
  }

  RawConnection connect() throws IOException {
    return new RawConnection(new Socket(InetAddress.getLoopbackAddress(), port()));
  }

  @Override
  public void close() {
    server.disposeNow();
    scheduler.disposeGracefully().block(Duration.ofSeconds(5));
  }
}
