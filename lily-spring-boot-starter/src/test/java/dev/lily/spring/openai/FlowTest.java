package dev.lily.spring.openai;

import static dev.lily.spring.openai.ScriptedEngine.answer;
import static dev.lily.spring.openai.ScriptedEngine.completed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.spring.AnswerRecorder;
import java.io.IOException;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** Clients that go away, read slowly or do not read at all. */
@Timeout(60)
class FlowTest {
  private static final String MESSAGES = "'messages':[{'role':'user','content':'hi'}]";
  private static final String WHOLE = "{" + MESSAGES + "}";
  private static final String STREAM = "{'stream':true," + MESSAGES + "}";

  private final List<AutoCloseable> open = new ArrayList<>();

  private ScriptedEngine engine(ScriptedEngine engine) {
    open.add(engine);
    return engine;
  }

  private EndpointServer serve(ScriptedEngine engine) {
    EndpointServer server = EndpointServer.over(engine(engine), OpenAiOptions.builder().build());
    open.add(server);
    return server;
  }

  @AfterEach
  void close() throws Exception {
    for (AutoCloseable closeable : open) {
      closeable.close();
    }
  }

  private static Mono<RunningCompletion> start(ScriptedEngine engine, int choices) {
    List<GenerationRequest> requests = new ArrayList<>();
    for (int i = 0; i < choices; i++) {
      requests.add(GenerationRequest.of("hi"));
    }
    return RunningCompletion.start("nano", engine, requests, AnswerRecorder.NONE);
  }

  @Test
  void pausesTheEngineWhileTheBufferIsFull() throws InterruptedException {
    ScriptedEngine engine = engine(ScriptedEngine.endless(answer("x")));
    RunningCompletion running = start(engine, 2).block();
    StepVerifier.create(running.events(), 0)
        .then(() -> engine.sessions.forEach(FlowTest::awaitPause))
        .then(() -> assertThat(played(engine)).isEqualTo(2 * RunningCompletion.BUFFERED_EVENTS))
        .thenRequest(10)
        .expectNextCount(10)
        .then(
            () -> await().until(() -> played(engine) == 2 * RunningCompletion.BUFFERED_EVENTS + 10))
        .thenCancel()
        .verify();
    for (ScriptedEngine.Session session : engine.sessions) {
      session.await();
      assertThat(session.cancelled).isTrue();
    }
  }

  private static int played(ScriptedEngine engine) {
    return engine.sessions.stream().mapToInt(session -> session.played.get()).sum();
  }

  private static void awaitPause(ScriptedEngine.Session session) {
    await().until(() -> session.paused.getCount() == 0);
  }

  @Test
  void cancelsWhatWasSubmittedBeforeTheCancellation() throws InterruptedException {
    CountDownLatch submitting = new CountDownLatch(1);
    CountDownLatch proceed = new CountDownLatch(1);
    ScriptedEngine engine =
        engine(
            ScriptedEngine.of(
                _ -> {
                  submitting.countDown();
                  try {
                    assertThat(proceed.await(10, TimeUnit.SECONDS)).isTrue();
                  } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                  }
                  return List.of(answer("x"));
                }));
    BaseSubscriber<RunningCompletion> client = new BaseSubscriber<>() {};
    Thread.ofPlatform().start(() -> start(engine, 3).subscribe(client));
    submitting.await();
    client.cancel();
    proceed.countDown();
    await().until(() -> engine.sessions.size() == 1 && engine.sessions.getFirst().isDone());
    assertThat(engine.sessions.getFirst().cancelled).isTrue();
  }

  @Test
  void stopsTheEngineWhenTheClientOfAStreamGoesAway() throws Exception {
    EndpointServer server = serve(ScriptedEngine.endless(answer("x")));
    try (RawConnection connection = server.connect()) {
      connection.post(STREAM);
      connection.readUntil("\"content\":\"x\"", 5);
    }
    server.engine().sessions.getFirst().await();
    assertThat(server.engine().sessions.getFirst().cancelled).isTrue();
  }

  @Test
  void stopsTheEngineWhenTheClientGoesAwayBeforeTheFirstToken() throws Exception {
    EndpointServer server = serve(ScriptedEngine.stepwise(completed(FinishReason.STOP)));
    for (String body : List.of(WHOLE, STREAM)) {
      int before = server.engine().sessions.size();
      try (RawConnection connection = server.connect()) {
        connection.post(body);
        await().until(() -> server.engine().sessions.size() > before);
      }
      server.engine().sessions.getLast().await();
      assertThat(server.engine().sessions.getLast().cancelled).isTrue();
    }
  }

  @Test
  void stopsAllChoicesWhenTheClientGoesAway() throws Exception {
    EndpointServer server = serve(ScriptedEngine.endless(answer("x")));
    try (RawConnection connection = server.connect()) {
      connection.post("{'n':3,'stream':true," + MESSAGES + "}");
      connection.readUntil("\"content\":\"x\"", 5);
    }
    assertThat(server.engine().sessions).hasSize(3);
    for (ScriptedEngine.Session session : server.engine().sessions) {
      session.await();
      assertThat(session.cancelled).isTrue();
    }
  }

  @Test
  void pausesAStreamThatIsNotReadGoesOnWhenItIsAndServesOthersMeanwhile() throws Exception {
    EndpointServer server = serve(ScriptedEngine.endless(answer("x".repeat(10_000))));
    try (RawConnection slow = server.connect();
        RawConnection fast = server.connect()) {
      slow.post(STREAM);
      await().until(() -> !server.engine().sessions.isEmpty());
      ScriptedEngine.Session session = server.engine().sessions.getFirst();
      session.paused.await();
      int paused = session.played.get();
      fast.post(STREAM);
      fast.readUntil("\"content\":\"x", 3);
      slow.skip(30_000_000);
      assertThat(session.played.get()).isGreaterThan(paused);
      assertThat(session.isDone()).isFalse();
    }
  }

  @Test
  void breaksTheConnectionOfAClientThatReadsNothing() throws Exception {
    EndpointServer server = serve(ScriptedEngine.endless(answer("x".repeat(10_000))));
    try (RawConnection connection = server.connect()) {
      connection.post(STREAM);
      await().until(() -> !server.engine().sessions.isEmpty());
      ScriptedEngine.Session session = server.engine().sessions.getFirst();
      session.paused.await();
      server.engine().expireStalled();
      session.await();
      assertThat(end(connection)).doesNotContain("[DONE]").doesNotContain("\"error\"");
    }
  }

  /** The last bytes that arrive before the connection ends, in whichever way. */
  private static String end(RawConnection connection) throws IOException {
    try {
      return connection.readToEnd();
    } catch (SocketException e) {
      return "";
    }
  }
}
