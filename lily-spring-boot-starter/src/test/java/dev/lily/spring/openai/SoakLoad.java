package dev.lily.spring.openai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.generation.DeadlineExceededException;
import dev.lily.engine.generation.EngineBusyException;
import dev.lily.spring.ai.LilyChatModel;
import dev.lily.spring.ai.LilyChatOptions;
import dev.lily.spring.openai.SoakClient.Received;
import dev.lily.spring.openai.SoakRequests.Chat;
import dev.lily.spring.openai.SoakRequests.Kind;
import dev.lily.spring.openai.SoakRequests.Planned;
import dev.lily.spring.openai.SoakTally.Answered;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.ai.chat.prompt.Prompt;
import tools.jackson.databind.JsonNode;

/** Clients that take one request after the other until all are done. */
final class SoakLoad {
  private static final String PAUSE_QUESTION =
      "{\"temperature\":0,\"reasoning_effort\":\"none\",\"max_tokens\":2,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";

  private final SoakRequests requests;
  private final SoakClient client;
  private final LilyChatModel model;
  private final SoakTally tally;
  private final AtomicInteger next = new AtomicInteger();

  /**
   * @param model of the same application, for what the endpoint's requests cannot say
   */
  SoakLoad(SoakRequests requests, SoakClient client, LilyChatModel model, SoakTally tally) {
    this.requests = requests;
    this.client = client;
    this.model = model;
    this.tally = tally;
  }

  /**
   * Sends the first {@code count} requests.
   *
   * @param afterEach what must hold at any time
   */
  void run(int clients, int count, Runnable afterEach) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < clients; i++) {
      threads.add(
          Thread.ofPlatform().name("soak-client-" + i).start(() -> client(count, afterEach)));
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private void client(int count, Runnable afterEach) {
    Chat chat = new Chat();
    for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
      Planned request = requests.request(i, chat);
      try {
        send(request, chat);
        afterEach.run();
      } catch (Exception | AssertionError e) {
        chat.forget();
        tally.problem("request %d, %s: %s".formatted(i, request, e));
      }
    }
  }

  /** Sends a request again until it does not find the queue full. */
  private void send(Planned request, Chat chat) throws Exception {
    while (true) {
      long ends = tally.ends();
      long start = System.nanoTime();
      if (isTaken(request, chat)) {
        tally.ended(request.kind(), System.nanoTime() - start);
        return;
      }
      tally.refused(ends);
    }
  }

  private boolean isTaken(Planned request, Chat chat) throws Exception {
    Random random = request.random();
    String body = request.streamed() ? streamed(request.body()) : request.body();
    return switch (request.kind()) {
      case DEADLINE -> expire(Duration.ofMillis(1 + random.nextInt(50)));
      case LEAVES_WAITING -> client.leave(body, 0, random.nextBoolean()) == 0;
      case LEAVES_READING -> leave(body, 1 + random.nextInt(40), random.nextBoolean());
      case SLOW -> check(client.readSlowly(body, 30, this::pause), request, chat);
      default -> {
        Received received = client.post(body);
        if (request.streamed() && received.status() == 200) {
          tally.firstToken(received.firstNanos());
        }
        yield check(received, request, chat);
      }
    };
  }

  static String streamed(String body) {
    return "{\"stream\":true," + body.substring(1);
  }

  /** As long as another request takes, whether or not it is refused. */
  private void pause() throws IOException, InterruptedException {
    assertThat(client.post(PAUSE_QUESTION).status()).isIn(200, 429);
  }

  private boolean leave(String body, int pieces, boolean reset) throws IOException {
    int status = client.leave(body, pieces, reset);
    assertThat(status).isIn(200, 429);
    return status == 200;
  }

  private boolean expire(Duration timeout) {
    LilyChatOptions options =
        LilyChatOptions.builder().minTokens(1900).thinking(false).timeout(timeout).build();
    try {
      model.call(new Prompt("Tell me a story.", options));
    } catch (DeadlineExceededException e) {
      return true;
    } catch (EngineBusyException e) {
      return false;
    }
    throw new AssertionError("The answer came before its deadline of " + timeout);
  }

  private boolean check(Received received, Planned request, Chat chat) {
    if (received.status() == 429) {
      if (request.kind() != Kind.SLOW) {
        assertThat(code(received)).isEqualTo("rate_limit_exceeded");
        assertThat(Integer.parseInt(received.retryAfter())).isPositive();
      }
      return false;
    }
    assertThat(received.status()).as(received.body()).isEqualTo(request.refusal().status());
    if (received.status() != 200) {
      assertThat(code(received)).isEqualTo(request.refusal().code());
      return true;
    }
    JsonNode choices = choices(received.body(), request.streamed());
    tally.answered(new Answered(request.kind(), request.body(), withoutIds(choices)));
    if (request.kind() == Kind.CHAT) {
      chat.answered(choices.get(0).path("message").path("content").asString(""));
    }
    return true;
  }

  private static JsonNode choices(String body, boolean streamed) {
    if (!streamed) {
      return Json.read(body).path("choices");
    }
    SentEvents events = SentEvents.of(body);
    assertThat(events.done()).as("the end of %s", body).isTrue();
    return events.assembled();
  }

  private static String code(Received received) {
    JsonNode error = Json.read(received.body()).path("error");
    assertThat(error.propertyNames()).containsExactly("message", "type", "param", "code");
    return error.path("code").asString("");
  }

  /** Choices as JSON; each request's calls have ids of their own. */
  static String withoutIds(JsonNode choices) {
    return choices.toString().replaceAll("\"id\":\"[^\"]+\"", "\"id\":\"\"");
  }
}
