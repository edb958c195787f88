package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.lily.engine.EngineStats;
import dev.lily.engine.LilyEngine;
import dev.lily.engine.generation.Usage;
import dev.lily.spring.Nano;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.reactivestreams.Subscription;
import org.springframework.ai.chat.client.ChatClient;
import org.springframework.ai.chat.model.ChatResponse;
import reactor.core.publisher.BaseSubscriber;

/** Long streams through Spring AI's ChatClient, taken to the end and left in the middle. */
@Timeout(300)
class LilyChatClientStreamTest {

  private static final int LONGER_THAN_ANY_PREFETCH = 600;

  private final LilyEngine engine = Nano.engine();
  private final ChatClient client =
      ChatClient.create(
          LilyChatModel.builder(engine)
              .options(
                  LilyChatOptions.builder()
                      .temperature(0.0)
                      .thinking(false)
                      .minTokens(LONGER_THAN_ANY_PREFETCH)
                      .maxTokens(LONGER_THAN_ANY_PREFETCH)
                      .build())
              .build());

  private ChatClient.ChatClientRequestSpec story() {
    return client.prompt("Tell me a story.");
  }

  private static String text(ChatResponse chunk) {
    return String.valueOf(chunk.getResult().getOutput().getText());
  }

  @Test
  void streamsALongAnswerToItsEnd() {
    ChatResponse called = story().call().chatResponse();
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    List<ChatResponse> chunks =
        story().stream()
            .chatResponse()
            .doOnNext(chunk -> threads.add(Thread.currentThread()))
            .collectList()
            .block();

    assertThat(threads)
        .allMatch(thread -> thread.getName().startsWith("boundedElastic") && !thread.isVirtual());
    assertThat(chunks).hasSizeGreaterThan(300);
    assertThat(chunks.stream().map(LilyChatClientStreamTest::text).reduce("", String::concat))
        .isEqualTo(text(called));
    ChatResponse last = chunks.getLast();
    assertThat(last.getResult().getMetadata().getFinishReason()).isEqualTo("length");
    assertThat(last.getMetadata().getUsage().getCompletionTokens())
        .isEqualTo(LONGER_THAN_ANY_PREFETCH);
    assertThat(last.getMetadata().getUsage().getPromptTokens())
        .isEqualTo(called.getMetadata().getUsage().getPromptTokens());
    assertThat(last.getMetadata().getUsage().getNativeUsage()).isInstanceOf(Usage.class);
    assertThat(chunks.subList(0, chunks.size() - 1))
        .allSatisfy(
            chunk -> {
              assertThat(chunk.getResult().getMetadata().getFinishReason()).isNull();
              assertThat(chunk.getMetadata().getUsage().getTotalTokens()).isZero();
            });
  }

  /** Steps submitted until the cancellation had been told to the engine, and at the very end. */
  private record Steps(long atCancel, long atEnd) {}

  private Steps stepsOfAStreamLeftAfter(int chunks) throws Exception {
    CompletableFuture<Long> stepsAtCancel = new CompletableFuture<>();
    story().stream()
        .chatResponse()
        .subscribe(
            new BaseSubscriber<>() {
              private int taken;

              @Override
              protected void hookOnSubscribe(Subscription subscription) {
                subscription.request(Long.MAX_VALUE);
              }

              @Override
              protected void hookOnNext(ChatResponse chunk) {
                if (++taken == chunks) {
                  cancel();
                  stepsAtCancel.complete(engine.stats().steps());
                }
              }
            });
    long atCancel = stepsAtCancel.get(60, TimeUnit.SECONDS);
    await().atMost(Duration.ofSeconds(60)).until(() -> engine.stats().running() == 0);
    return new Steps(atCancel, engine.stats().steps());
  }

  @Test
  void stopsTheEngineWithinAStepWhenTheSubscriberLeaves() throws Exception {
    await().atMost(Duration.ofSeconds(60)).until(() -> engine.stats().running() == 0);
    EngineStats before = engine.stats();
    int streams = 10;
    for (int i = 1; i <= streams; i++) {
      Steps steps = stepsOfAStreamLeftAfter(5 * i);
      assertThat(steps.atEnd() - steps.atCancel()).isLessThanOrEqualTo(1);
    }
    EngineStats after = engine.stats();
    assertThat(after.cancelled() - before.cancelled()).isEqualTo(streams);
    assertThat(after.generatedTokens() - before.generatedTokens())
        .isLessThan((long) streams * LONGER_THAN_ANY_PREFETCH);
  }
}
