package dev.lily.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.MediaType;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.blockhound.BlockHound;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Many streams at a time, taken by virtual threads, while BlockHound watches the event loops and
 * Reactor's parallel threads. In a JVM of its own.
 */
@Tag("blockhound")
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {
      "spring.threads.virtual.enabled=true",
      "lily.context-length=256",
      "lily.queue-limit=200",
      "lily.chat.temperature=0",
      "lily.chat.thinking=false",
      "lily.chat.min-tokens=12",
      "lily.chat.max-tokens=12",
      "lily.openai.enabled=true",
    })
@Timeout(300)
class EventLoopTest {

  private static final int SUBSCRIBERS = 200;
  private static final String QUESTION = "Tell me a story.";

  /** Where a thread that must not block did. */
  private static final Queue<String> BLOCKED = new ConcurrentLinkedQueue<>();

  static {
    BlockHound.builder()
        .loadIntegrations()
        .blockingMethodCallback(
            method ->
                BLOCKED.add(
                    "%s in %s: %s"
                        .formatted(
                            method,
                            Thread.currentThread().getName(),
                            List.of(Thread.currentThread().getStackTrace()))))
        .install();
  }

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  @Import(Chat.class)
  static class Application {}

  @RestController
  static class Chat {
    private final ChatClient client;

    Chat(ChatClient.Builder builder) {
      client = builder.build();
    }

    @GetMapping(path = "/stream", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
    Flux<List<String>> stream() {
      return client.prompt(QUESTION).stream().content().map(List::of);
    }

    /** What must not be done. */
    @GetMapping("/blocking")
    Mono<String> blocking() {
      block();
      return Mono.just(Thread.currentThread().getName());
    }
  }

  private static void block() {
    LockSupport.parkNanos(1);
  }

  @DynamicPropertySource
  static void model(DynamicPropertyRegistry registry) {
    registry.add("lily.model", Nano.DIRECTORY::toString);
  }

  @Autowired LilyEngine engine;
  @Autowired ChatClient.Builder clients;
  @LocalServerPort int port;

  @BeforeEach
  void forget() {
    BLOCKED.clear();
  }

  private WebClient web() {
    return WebClient.create("http://localhost:" + port);
  }

  /**
   * Takes all streams on virtual threads. Nobody goes on behind the first element before all have
   * one, so all are open at the same time.
   */
  private static List<List<String>> takeTogether(IntFunction<Flux<String>> streams)
      throws Exception {
    CountDownLatch begun = new CountDownLatch(SUBSCRIBERS);
    List<Future<List<String>>> taken = new ArrayList<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < SUBSCRIBERS; i++) {
        Flux<String> stream = streams.apply(i);
        taken.add(
            threads.submit(
                () -> {
                  List<String> elements = new ArrayList<>();
                  Iterator<String> iterator = stream.toIterable(1).iterator();
                  elements.add(iterator.next());
                  begun.countDown();
                  begun.await();
                  iterator.forEachRemaining(elements::add);
                  return elements;
                }));
      }
    }
    List<List<String>> all = new ArrayList<>();
    for (Future<List<String>> one : taken) {
      all.add(one.get());
    }
    return all;
  }

  private void assertAllTheSame(List<List<String>> taken, String expected) {
    assertThat(taken)
        .hasSize(SUBSCRIBERS)
        .allSatisfy(elements -> assertThat(String.join("", elements)).isEqualTo(expected));
    assertThat(BLOCKED).isEmpty();
    await().until(() -> engine.stats().running() == 0);
  }

  @Test
  void streamsToManySubscribersWithoutBlockingAReactorThread() throws Exception {
    ChatClient client = clients.build();
    String expected = client.prompt(QUESTION).call().content();
    Queue<Thread> threads = new ConcurrentLinkedQueue<>();
    List<List<String>> taken =
        takeTogether(
            i ->
                Flux.defer(() -> client.prompt(QUESTION).stream().content())
                    .doOnNext(piece -> threads.add(Thread.currentThread()))
                    .subscribeOn(Schedulers.parallel()));
    assertAllTheSame(taken, expected);
    assertThat(threads).allMatch(Thread::isVirtual);
  }

  @Test
  void streamsToManyClientsWithoutBlockingAnEventLoop() throws Exception {
    WebClient web = web();
    String expected =
        String.join(
            "", web.get().uri("/stream").retrieve().bodyToFlux(String.class).collectList().block());
    assertThat(expected).startsWith("[\"");
    List<List<String>> taken =
        takeTogether(i -> web.get().uri("/stream").retrieve().bodyToFlux(String.class));
    assertAllTheSame(taken, expected);
  }

  @Test
  void streamsByTheOpenAiEndpointWithoutBlockingAnEventLoop() throws Exception {
    WebClient web = web();
    List<List<String>> taken =
        takeTogether(
            i ->
                web.post()
                    .uri("/v1/chat/completions")
                    .contentType(MediaType.APPLICATION_JSON)
                    .bodyValue(
                        """
                        {"model": "%s", "stream": true,
                         "messages": [{"role": "user", "content": "%s"}]}"""
                            .formatted(Nano.NAME, QUESTION))
                    .retrieve()
                    .bodyToFlux(String.class));
    assertThat(taken)
        .hasSize(SUBSCRIBERS)
        .allSatisfy(events -> assertThat(events).endsWith("[DONE]").hasSizeGreaterThan(10));
    assertThat(BLOCKED).isEmpty();
  }

  @Test
  void noticesABlockedParallelThread() {
    Mono.fromRunnable(EventLoopTest::block).subscribeOn(Schedulers.parallel()).block();
    assertThat(BLOCKED).singleElement().asString().contains("park").contains("in parallel-");
  }

  @Test
  void noticesABlockedEventLoop() {
    String thread = web().get().uri("/blocking").retrieve().bodyToMono(String.class).block();
    assertThat(BLOCKED)
        .singleElement()
        .asString()
        .contains("park")
        .contains("in " + thread)
        .contains("Chat.blocking");
    assertThat(thread).contains("-http-");
  }

  @Test
  void doesNotMindABlockedVirtualThread() throws Exception {
    Thread.ofVirtual().start(EventLoopTest::block).join();
    assertThat(BLOCKED).isEmpty();
  }
}
