package dev.lily.spring.ai;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.EngineClosedException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationResult;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.reactivestreams.Subscription;
import org.springframework.ai.chat.model.ChatResponse;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.SignalType;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

@Timeout(60)
class AnswerStreamTest {

  private final Scheduler scheduler = Schedulers.newBoundedElastic(4, 1000, "answers");
  private final List<ScriptedAnswer> answers = new CopyOnWriteArrayList<>();
  private final List<GenerationResult> results = new CopyOnWriteArrayList<>();

  @AfterEach
  void disposeScheduler() {
    Hooks.resetOnErrorDropped();
    scheduler.dispose();
  }

  private Flux<ChatResponse> stream(Function<GenerationListener, GenerationHandle> submission) {
    return AnswerStream.of(submission, new ChatResponseMapper("m"), "id", results::add, scheduler);
  }

  private Flux<ChatResponse> stream(List<ResponsePart> parts) {
    return stream(
        listener -> {
          ScriptedAnswer answer = ScriptedAnswer.start(listener, parts);
          answers.add(answer);
          return answer;
        });
  }

  private static List<ResponsePart> pieces(int number) {
    List<ResponsePart> parts = new ArrayList<>();
    for (int i = 0; i < number; i++) {
      parts.add(new ResponsePart.AnswerText("t" + i + " "));
    }
    return parts;
  }

  private static String text(ChatResponse chunk) {
    return String.valueOf(chunk.getResult().getOutput().getText());
  }

  @Test
  void submitsNothingBeforeSubscriptionAndOncePerSubscription() {
    Flux<ChatResponse> stream = stream(pieces(3));
    assertThat(answers).isEmpty();
    assertThat(stream.collectList().block()).hasSize(4);
    assertThat(stream.collectList().block()).hasSize(4);
    assertThat(answers).hasSize(2);
  }

  @Test
  void sendsReasoningWholeSoFarAndTextPieceByPiece() {
    List<ChatResponse> chunks =
        stream(
                List.of(
                    new ResponsePart.ReasoningText("Let me "),
                    new ResponsePart.ReasoningText("think."),
                    new ResponsePart.AnswerText("It is "),
                    new ResponsePart.AnswerText("4.")))
            .collectList()
            .block();
    assertThat(chunks)
        .extracting(AnswerStreamTest::text)
        .containsExactly("", "", "It is ", "4.", "");
    assertThat(chunks)
        .extracting(c -> c.getResult().getOutput().getMetadata().get("reasoningContent"))
        .containsExactly(
            "Let me ", "Let me think.", "Let me think.", "Let me think.", "Let me think.");
    assertThat(chunks.getLast().getResult().getMetadata().getFinishReason()).isEqualTo("stop");
    assertThat(chunks.getLast().getMetadata().getUsage().getNativeUsage())
        .isEqualTo(ScriptedAnswer.USAGE);
    assertThat(results)
        .singleElement()
        .satisfies(
            result -> {
              assertThat(result.text()).isEqualTo("It is 4.");
              assertThat(result.reasoning()).isEqualTo("Let me think.");
            });
  }

  @Test
  void flowsThroughAPrefetchingSubscriberToTheEnd() {
    Integer received =
        stream(pieces(3000))
            .publishOn(Schedulers.boundedElastic(), 256)
            .map(chunk -> 1)
            .reduce(0, Integer::sum)
            .block();
    assertThat(received).isEqualTo(3001);
  }

  @Test
  void holdsBackTheEngineWhileNobodyTakesAnything() throws InterruptedException {
    List<Integer> ahead = new ArrayList<>();
    CountDownLatch end = new CountDownLatch(1);
    AtomicInteger received = new AtomicInteger();
    stream(pieces(400))
        .subscribe(
            new BaseSubscriber<>() {
              @Override
              protected void hookOnSubscribe(Subscription subscription) {
                request(1);
              }

              @Override
              protected void hookOnNext(ChatResponse chunk) {
                // The first chunk may come before the submission has returned.
                while (answers.isEmpty()) {
                  Thread.onSpinWait();
                }
                ahead.add(answers.getFirst().emitted.get() - received.incrementAndGet());
                request(1);
              }

              @Override
              protected void hookFinally(SignalType type) {
                end.countDown();
              }
            });
    end.await();
    assertThat(received).hasValue(401);
    assertThat(ahead).allSatisfy(n -> assertThat(n).isLessThanOrEqualTo(AnswerStream.PREFETCH + 1));
  }

  @Test
  void pausesAtTheBoundAndGoesOnWithDemand() {
    StepVerifier.create(stream(pieces(200)), 0)
        .expectSubscription()
        .then(() -> awaitPause(AnswerStream.PREFETCH))
        .thenRequest(100)
        .expectNextCount(100)
        .thenRequest(Long.MAX_VALUE)
        .expectNextCount(101)
        .verifyComplete();
  }

  /** Waits until the answer has emitted so many pieces; it cannot emit more without demand. */
  private void awaitPause(int pieces) {
    while (answers.isEmpty() || answers.getFirst().emitted.get() < pieces) {
      Thread.onSpinWait();
    }
    assertThat(answers.getFirst().emitted).hasValue(pieces);
  }

  @Test
  void cancelsTheRequestAtEveryIndexExactlyOnceWithoutALostError() throws InterruptedException {
    List<Throwable> lost = new CopyOnWriteArrayList<>();
    Hooks.onErrorDropped(lost::add);
    for (int taken = 1; taken <= 12; taken++) {
      answers.clear();
      StepVerifier.create(stream(pieces(2000)), taken).expectNextCount(taken).thenCancel().verify();
      answers.getFirst().await();
      assertThat(answers.getFirst().cancels).hasValue(1);
      assertThat(results.getLast().finishReason()).isEqualTo(FinishReason.CANCELLED);
    }
    assertThat(lost).isEmpty();
  }

  @Test
  void sendsOneTerminalSignalAlsoWhenCancelledAfterCompletion() {
    ConcurrentLinkedQueue<String> signals = new ConcurrentLinkedQueue<>();
    AtomicReference<Subscription> subscription = new AtomicReference<>();
    stream(pieces(3))
        .doOnComplete(() -> signals.add("complete"))
        .doOnError(e -> signals.add("error"))
        .doOnSubscribe(subscription::set)
        .blockLast();
    subscription.get().cancel();
    assertThat(signals).containsExactly("complete");
    assertThat(answers.getFirst().cancels).hasValue(0);
  }

  @Test
  void neverRunsTheSubscribersWorkOnTheEngineThread() {
    List<String> threads =
        stream(pieces(100)).map(chunk -> Thread.currentThread().getName()).collectList().block();
    assertThat(threads).hasSize(101).allMatch(name -> name.startsWith("answers"));
  }

  @Test
  void submitsOffTheSubscribersThread() {
    AtomicReference<String> thread = new AtomicReference<>();
    stream(
            listener -> {
              thread.set(Thread.currentThread().getName());
              return ScriptedAnswer.start(listener, pieces(1));
            })
        .blockLast();
    assertThat(thread.get()).startsWith("answers");
  }

  @Test
  void passesOnWhatTheSubmissionThrows() {
    EngineClosedException closed = new EngineClosedException("closed");
    StepVerifier.create(
            stream(
                listener -> {
                  throw closed;
                }))
        .verifyErrorSatisfies(e -> assertThat(e).isSameAs(closed));
  }

  @Test
  void passesOnAFailureAfterThePiecesBeforeIt() {
    EngineClosedException closed = new EngineClosedException("closed");
    StepVerifier.create(
            stream(
                listener -> {
                  ScriptedAnswer idle = ScriptedAnswer.start(event -> {}, List.of());
                  listener.onEvent(
                      new GenerationEvent.Output(
                          List.of(new ResponsePart.AnswerText("a")), List.of()));
                  listener.onEvent(new GenerationEvent.Failed(closed));
                  return idle;
                }))
        .expectNextMatches(chunk -> text(chunk).equals("a"))
        .verifyErrorSatisfies(e -> assertThat(e).isSameAs(closed));
    assertThat(results).isEmpty();
  }

  @Test
  void cancelsARequestWhoseSubscriberLeftWhileItWasSubmitted() throws InterruptedException {
    CountDownLatch submitting = new CountDownLatch(1);
    CountDownLatch left = new CountDownLatch(1);
    var subscription =
        stream(
                listener -> {
                  submitting.countDown();
                  awaitUninterruptibly(left);
                  ScriptedAnswer answer = ScriptedAnswer.start(listener, pieces(100_000));
                  answers.add(answer);
                  return answer;
                })
            .subscribe();
    submitting.await();
    subscription.dispose();
    left.countDown();
    while (answers.isEmpty()) {
      Thread.onSpinWait();
    }
    answers.getFirst().await();
    assertThat(answers.getFirst().cancels.get()).isEqualTo(1);
    assertThat(answers.getFirst().emitted.get()).isLessThan(100_000);
  }

  private static void awaitUninterruptibly(CountDownLatch latch) {
    while (true) {
      try {
        latch.await();
        return;
      } catch (InterruptedException e) {
        // What is waited for comes all the same.
      }
    }
  }

  @Test
  void submitsNothingForASubscriberThatLeftBefore() {
    Scheduler single = Schedulers.newSingle("busy");
    try {
      CountDownLatch free = new CountDownLatch(1);
      single.schedule(() -> awaitUninterruptibly(free));
      AtomicInteger submissions = new AtomicInteger();
      AnswerStream.of(
              listener -> {
                submissions.incrementAndGet();
                return ScriptedAnswer.start(listener, pieces(1));
              },
              new ChatResponseMapper("m"),
              "id",
              results::add,
              single)
          .subscribe()
          .dispose();
      CountDownLatch after = new CountDownLatch(1);
      single.schedule(after::countDown);
      free.countDown();
      awaitUninterruptibly(after);
      assertThat(submissions).hasValue(0);
    } finally {
      single.dispose();
    }
  }

  @Test
  void reportsASchedulerThatTakesNoMoreTasks() {
    scheduler.dispose();
    StepVerifier.create(stream(pieces(1))).expectError().verify(Duration.ofSeconds(30));
  }
}
