package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.EngineOptions;
import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import dev.lily.spring.Nano;
import dev.lily.spring.actuate.LilyHealthIndicator;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.openai.SoakClient.Received;
import dev.lily.spring.openai.SoakRequests.Kind;
import dev.lily.spring.openai.SoakTally.Answered;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import java.util.stream.Stream;
import org.awaitility.core.ConditionTimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/**
 * Many clients that behave and misbehave against one application: every answer is the one that the
 * request gets alone, every error is a documented one, and nothing is left behind. {@code
 * lily.soak.requests} says how many requests, and which ones follows from {@code lily.soak.seed}.
 */
@Timeout(value = 60, unit = TimeUnit.MINUTES)
class SoakTest {
  private static final int REQUESTS = Integer.getInteger("lily.soak.requests", 400);
  private static final long SEED = Long.getLong("lily.soak.seed", 1);
  private static final int CLIENTS = 32;
  private static final int SESSIONS = 4;
  private static final int QUEUE = 24;
  private static final int CONTEXT = 2048;

  /** One answer in so many is compared with that of the same request alone. */
  private static final int SAMPLED = 6;

  private static final Duration LONG = Duration.ofMinutes(2);

  @Configuration(proxyBeanMethods = false)
  @EnableAutoConfiguration
  static class Application {}

  @TempDir private Path cacheDirectory;
  private final SoakTally tally = new SoakTally();
  private ConfigurableApplicationContext application;
  private LilyEngine engine;
  private SoakClient client;

  @BeforeEach
  void start() {
    application =
        new SpringApplicationBuilder(Application.class)
            .web(WebApplicationType.REACTIVE)
            .registerShutdownHook(false)
            .run(
                "--server.address=127.0.0.1",
                "--server.port=0",
                "--lily.model=" + Nano.DIRECTORY,
                "--lily.context-length=" + CONTEXT,
                "--lily.max-sessions=" + SESSIONS,
                "--lily.queue-limit=" + QUEUE,
                "--lily.stall-timeout=10m",
                "--lily.max-step-time=50ms",
                "--lily.speculation.mode=prompt-lookup",
                "--lily.cache.dir=" + cacheDirectory,
                "--lily.openai.enabled=true",
                "--lily.openai.request-timeout=10m",
                "--lily.openai.max-request-size=64KB");
    engine = application.getBean(LilyEngine.class);
    client =
        new SoakClient(
            application.getEnvironment().getRequiredProperty("local.server.port", Integer.class));
  }

  @AfterEach
  void stop() {
    client.close();
    application.close();
  }

  @Test
  void answersEveryClientRightAndLeavesNothingBehind() throws Exception {
    System.out.printf(
        "Soak of %d requests by %d clients, lily.soak.seed=%d%n", REQUESTS, CLIENTS, SEED);
    assertAnswers();
    Map<String, Integer> threads = threads();
    long mappings = mappings();

    SoakLoad load =
        new SoakLoad(
            new SoakRequests(SEED, CONTEXT),
            client,
            application.getBean(LilyChatModel.class),
            tally);
    load.run(CLIENTS, REQUESTS, this::assertWithinThePlan);
    int leaked = leakedState();
    int wrong = countWrong();
    assertAnswers();
    fillTheHouse();
    assertAnswers();

    client.close();
    leaked += leakedState() + leakedThreads(threads) + (int) (mappings() - mappings);
    System.out.print(tally.table());
    System.out.printf(
        "SOAK requests=%d wrong=%d leaked=%d p50=%d p99=%d (ms to the first token of a stream)%n",
        REQUESTS, wrong, leaked, tally.millisToFirstToken(0.5), tally.millisToFirstToken(0.99));
    assertThat(tally.problems()).as("what went wrong under lily.soak.seed=%d", SEED).isEmpty();
    assertCounted();
    assertThat(wrong).isZero();
    assertThat(leaked).as("left behind; threads were %s and are %s", threads, threads()).isZero();
  }

  /** The application is well and knows what it knew. */
  private void assertAnswers() throws Exception {
    Received answer =
        client.post(
            "{'temperature':0,'presence_penalty':0,'reasoning_effort':'none','messages':[{'role':'user','content':'What is 60 - 16?'}]}"
                .replace('\'', '"'));
    assertThat(answer.status()).isEqualTo(200);
    assertThat(Json.read(answer.body()).at("/choices/0/message/content").stringValue())
        .isEqualTo("60 - 16 = 44");
    Health health = application.getBean(LilyHealthIndicator.class).health();
    assertThat(health.getStatus()).isEqualTo(Status.UP);
    assertThat(health.getDetails()).doesNotContainKey("lastFailure");
  }

  private void assertWithinThePlan() {
    EngineStats stats = engine.stats();
    assertThat(stats.kvPagesUsed()).isLessThanOrEqualTo(stats.kvPages());
    assertThat(stats.running()).isLessThanOrEqualTo(SESSIONS);
    assertThat(stats.alive()).isTrue();
  }

  /** Every request that was taken in ended in one way, and the cache is within its budget. */
  private void assertCounted() {
    EngineStats stats = engine.stats();
    assertThat(stats.submitted()).isEqualTo(stats.completed() + stats.cancelled() + stats.failed());
    assertThat(stats.failed()).isEqualTo(tally.count(Kind.DEADLINE));
    assertThat(stats.lastFailure()).isEmpty();
    assertThat(stats.cache().hits()).isPositive();
    assertThat(stats.disk().writes()).isPositive();
    assertThat(stats.disk().problem()).isEmpty();
    assertThat(stats.speculation().drafted()).isPositive();
    assertThat(stats.cache().bytes()).isPositive().isLessThanOrEqualTo(stats.cache().maxBytes());
    assertThat(engine.memoryPlan().totalBytes())
        .isLessThanOrEqualTo(engine.memoryPlan().budgetBytes());
  }

  /**
   * Asks some of the requests again, one by one, of another engine that has no cache and serves
   * nobody else.
   */
  private int countWrong() {
    List<Answered> sample = new ArrayList<>(tally.answered());
    Collections.shuffle(sample, new Random(SEED));
    sample = sample.subList(0, Math.ceilDiv(sample.size(), SAMPLED));
    assertThat(sample).isNotEmpty();
    int wrong = 0;
    try (LilyEngine alone =
            LilyEngine.open(
                EngineOptions.builder(Nano.DIRECTORY)
                    .contextLength(CONTEXT)
                    .maxSessions(1)
                    .cacheBytes(0L)
                    .build());
        EndpointServer server = EndpointServer.over(alone, OpenAiOptions.builder().build())) {
      for (Answered answered : sample) {
        String expected =
            SoakLoad.withoutIds(server.answerExactly(answered.body()).path("choices"));
        if (!answered.choices().equals(expected)) {
          wrong++;
          tally.problem("%s instead of %s".formatted(answered, expected));
        }
      }
    }
    return wrong;
  }

  /**
   * Takes all places, all pages and all of the queue, which shows that every one of them came back;
   * then all clients leave at once, without having read anything.
   */
  private void fillTheHouse() throws Exception {
    String endless =
        SoakLoad.streamed(
            SoakRequests.story(
                    Json.object("{'temperature':0,'logprobs':true,'top_logprobs':20}"),
                    CONTEXT - 100)
                .put("max_tokens", CONTEXT)
                .toString());
    long cancelled = engine.stats().cancelled();
    List<Socket> clients = new ArrayList<>();
    try {
      for (int i = 0; i < SESSIONS + QUEUE; i++) {
        clients.add(client.open(endless));
      }
      await()
          .atMost(LONG)
          .until(() -> engine.stats().running() == SESSIONS && engine.stats().queued() == QUEUE);
      Received refused = client.post(endless);
      assertThat(refused.status()).isEqualTo(429);
      assertThat(refused.body()).contains("\"rate_limit_exceeded\"");
      assertThat(Integer.parseInt(refused.retryAfter())).isPositive();
    } finally {
      for (Socket socket : clients) {
        socket.close();
      }
    }
    await().atMost(LONG).until(() -> engine.stats().cancelled() - cancelled == SESSIONS + QUEUE);
  }

  // What is left behind.

  /** Requests and pages that are still there after a while. */
  private int leakedState() {
    return settled(
        () -> {
          EngineStats stats = engine.stats();
          return stats.running() + stats.queued() + stats.kvPagesUsed();
        });
  }

  private int leakedThreads(Map<String, Integer> before) {
    return settled(
        () ->
            threads().entrySet().stream()
                .mapToInt(now -> now.getValue() - allowed(now.getKey(), before))
                .filter(more -> more > 0)
                .sum());
  }

  /** Threads there were before, or what a pool that grows with the load may grow to. */
  private static int allowed(String prefix, Map<String, Integer> before) {
    int cores = Runtime.getRuntime().availableProcessors();
    int pool =
        switch (prefix) {
          case "reactor-http-epoll-", "reactor-http-kqueue-", "reactor-http-nio-" ->
              Math.max(4, cores);
          case "boundedElastic-" -> 10 * cores;
          case "parallel-" -> cores;
          default -> 0;
        };
    return Math.max(pool, before.getOrDefault(prefix, 0));
  }

  /** Zero as soon as the count is zero, else what it is in the end. */
  private static int settled(IntSupplier count) {
    try {
      await().pollInSameThread().atMost(LONG).until(() -> count.getAsInt() == 0);
      return 0;
    } catch (ConditionTimeoutException e) {
      return count.getAsInt();
    }
  }

  /** How many threads there are of each name without its digits. */
  private static Map<String, Integer> threads() {
    Map<String, Integer> threads = new TreeMap<>();
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      threads.merge(thread.getName().replaceAll("\\d", ""), 1, Integer::sum);
    }
    return threads;
  }

  /** Mappings of the model's files, where the system lists them. */
  private static long mappings() throws IOException {
    Path maps = Path.of("/proc/self/maps");
    if (!Files.exists(maps)) {
      return 0;
    }
    try (Stream<String> lines = Files.lines(maps)) {
      return lines.filter(line -> line.contains(Nano.DIRECTORY.toString())).count();
    }
  }
}
