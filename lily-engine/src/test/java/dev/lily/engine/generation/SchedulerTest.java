package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.GREEDY;
import static dev.lily.engine.generation.ManualScheduler.prompt;
import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Gate;
import dev.lily.engine.model.Signal;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The engine thread and its callers. */
class SchedulerTest {
  private static final String STORY = "Once upon a time there was a fox";

  private static Scheduler start(ScriptedModel model) {
    // A stall longer than any test, so that only a signal can wake the engine.
    SchedulerOptions options = new SchedulerOptions(8, 64, 32, 4096, Duration.ofDays(1));
    return Scheduler.start(model, Nano.TOKENIZER, new int[] {Nano.END}, options);
  }

  private static Recorder submit(Scheduler scheduler, int first, Recorder recorder) {
    return recorder.submittedAs(
        scheduler.submit(
            GenerationRequest.of("x"),
            new EncodedPrompt(prompt(first, 3), false),
            GREEDY,
            recorder));
  }

  private static void close(Scheduler scheduler, ScriptedModel model) {
    assertThat(scheduler.close(Duration.ofMinutes(1))).isTrue();
    model.assertClean();
    model.close();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void deliversAllEventsOnTheEngineThread(int depth) throws InterruptedException {
    ScriptedModel model = saying(STORY).maxPassesInFlight(depth).build();
    Scheduler scheduler = start(model);
    List<String> threads = new CopyOnWriteArrayList<>();
    Recorder r =
        submit(scheduler, 1, new Recorder(_ -> threads.add(Thread.currentThread().getName())));
    r.handle().await();
    assertThat(r.text()).isEqualTo(STORY);
    assertThat(threads).containsOnly(Scheduler.THREAD_NAME);
    close(scheduler, model);
  }

  @Test
  void wakesForEachRequestAfterARest() throws InterruptedException {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    for (int i = 0; i < 50; i++) {
      Recorder r = submit(scheduler, i, new Recorder());
      r.handle().await();
      assertThat(r.completed().reason()).isEqualTo(FinishReason.STOP);
    }
    close(scheduler, model);
  }

  @Test
  void servesCallersOnManyThreads() throws InterruptedException {
    ScriptedModel model = saying(STORY).maxPassesInFlight(2).build();
    Scheduler scheduler = start(model);
    List<Recorder> recorders = new CopyOnWriteArrayList<>();
    List<Thread> callers = new ArrayList<>();
    for (int c = 0; c < 8; c++) {
      int first = c;
      callers.add(
          Thread.ofVirtual()
              .start(
                  () -> {
                    for (int i = 0; i < 8; i++) {
                      Recorder r = submit(scheduler, first, new Recorder());
                      recorders.add(r);
                      r.awaitEnd();
                    }
                  }));
    }
    for (Thread caller : callers) {
      caller.join();
    }
    close(scheduler, model);
    assertThat(recorders).hasSize(64).allSatisfy(r -> assertThat(r.text()).isEqualTo(STORY));
    assertThat(scheduler.counters().completed()).isEqualTo(64);
  }

  @Test
  void wakeResumesASessionForWhichTheEngineSleeps() {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    Recorder r = submit(scheduler, 1, new Recorder().ready(false)).awaitAsked();
    awaitSleep(r.engineThread());
    r.ready(true);
    r.handle().wake();
    r.awaitEnd();
    assertThat(r.text()).isEqualTo(STORY);
    close(scheduler, model);
  }

  @Test
  void cancelWakesAnEngineWhoseSessionsAreAllPaused() {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    Recorder r = submit(scheduler, 1, new Recorder().ready(false)).awaitAsked();
    awaitSleep(r.engineThread());
    r.handle().cancel();
    r.awaitEnd();
    assertThat(r.events()).hasSize(1);
    close(scheduler, model);
    assertThat(r.completed().reason()).isEqualTo(FinishReason.CANCELLED);
  }

  /** Waits until the thread waits for a signal or a deadline. */
  private static void awaitSleep(Thread thread) {
    awaitTrue(
        () ->
            thread.getState() == Thread.State.WAITING
                || thread.getState() == Thread.State.TIMED_WAITING);
  }

  private static void awaitTrue(BooleanSupplier condition) {
    Instant patience = Instant.now().plusSeconds(60);
    while (!condition.getAsBoolean()) {
      if (Instant.now().isAfter(patience)) {
        throw new AssertionError("What was waited for did not happen");
      }
      Thread.onSpinWait();
    }
  }

  @Test
  void aCancelDuringAPassTakesEffectWhenThePassIsOver() throws InterruptedException {
    ScriptedModel model = saying(STORY).build();
    Gate gate = model.hold(2);
    Scheduler scheduler = start(model);
    Recorder r = submit(scheduler, 1, new Recorder());
    gate.awaitReached();
    r.handle().cancel();
    gate.release();
    r.handle().await();
    assertThat(r.completed().usage().completionTokens()).isEqualTo(2);
    assertThat(model.steps()).hasSize(3);
    close(scheduler, model);
  }

  @Test
  void aNewRequestJoinsAfterThePassThatRuns() {
    ScriptedModel model = saying(STORY).build();
    Gate gate = model.hold(2);
    Scheduler scheduler = start(model);
    Recorder first = submit(scheduler, 1, new Recorder());
    gate.awaitReached();
    Recorder second = submit(scheduler, 2, new Recorder());
    gate.release();
    first.awaitEnd();
    second.awaitEnd();
    assertThat(model.steps().get(2)).hasSize(1);
    assertThat(model.steps().get(3)).hasSize(2);
    close(scheduler, model);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void closingWithoutGraceWaitsForThePassThatRuns(int depth) throws InterruptedException {
    ScriptedModel model = saying(STORY).maxPassesInFlight(depth).build();
    Gate gate = model.hold(2);
    Scheduler scheduler = start(model);
    Recorder r = submit(scheduler, 1, new Recorder());
    gate.awaitReached();
    Thread closer = Thread.ofPlatform().start(() -> scheduler.close(Duration.ZERO));
    awaitTrue(() -> !scheduler.isAlive());
    assertThat(r.handle().isDone()).isFalse();
    assertThatThrownBy(() -> submit(scheduler, 2, new Recorder()))
        .isInstanceOf(EngineClosedException.class);
    gate.release();
    closer.join();
    assertThat(r.failure()).isInstanceOf(EngineClosedException.class);
    close(scheduler, model);
  }

  @Test
  void closingCanBeRepeatedAndShortened() throws InterruptedException {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    Recorder paused = submit(scheduler, 1, new Recorder().ready(false)).awaitAsked();
    Thread patient = Thread.ofPlatform().start(() -> scheduler.close(Duration.ofDays(1)));
    awaitTrue(() -> !scheduler.isAlive());
    assertThat(scheduler.close(Duration.ZERO)).isTrue();
    patient.join();
    assertThat(paused.failure()).isInstanceOf(EngineClosedException.class);
    close(scheduler, model);
  }

  @Test
  void anInterruptEndsTheGrace() throws InterruptedException {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    Recorder paused = submit(scheduler, 1, new Recorder().ready(false)).awaitAsked();
    boolean[] flag = new boolean[1];
    Thread closer =
        Thread.ofPlatform()
            .start(
                () -> {
                  scheduler.close(Duration.ofDays(1));
                  flag[0] = Thread.currentThread().isInterrupted();
                });
    closer.interrupt();
    closer.join();
    assertThat(flag[0]).isTrue();
    assertThat(paused.failure()).isInstanceOf(EngineClosedException.class);
    close(scheduler, model);
  }

  @Test
  void refusesToWaitForItself() {
    ScriptedModel model = saying("ok").build();
    Scheduler scheduler = start(model);
    List<Throwable> thrown = new CopyOnWriteArrayList<>();
    Recorder[] self = new Recorder[1];
    Signal submitted = new Signal();
    self[0] =
        new Recorder(
            event -> {
              submitted.await();
              if (event instanceof GenerationEvent.PromptProgress) {
                thrown.add(thrownBy(() -> self[0].handle().await()));
                thrown.add(thrownBy(() -> scheduler.close(Duration.ZERO)));
              }
            });
    submit(scheduler, 1, self[0]);
    submitted.fire();
    self[0].awaitEnd();
    assertThat(thrown).hasSize(2).allMatch(IllegalStateException.class::isInstance);
    assertThat(self[0].text()).isEqualTo("ok");
    close(scheduler, model);
  }

  private interface Action {
    void run() throws Exception;
  }

  private static Throwable thrownBy(Action action) {
    try {
      action.run();
      return new AssertionError("nothing was thrown");
    } catch (Exception e) {
      return e;
    }
  }

  @Test
  void aListenerThatInterruptsTheEngineThreadDoesNoHarm() {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    Recorder rude = submit(scheduler, 1, new Recorder(_ -> Thread.currentThread().interrupt()));
    rude.awaitEnd();
    // With the flag set, the thread could not sleep.
    awaitTrue(() -> !rude.engineThread().isInterrupted());
    Recorder next = submit(scheduler, 2, new Recorder());
    next.awaitEnd();
    assertThat(rude.text()).isEqualTo(STORY);
    assertThat(next.text()).isEqualTo(STORY);
    close(scheduler, model);
  }

  @Test
  void aListenerMaySubmitTheNextRequest() {
    ScriptedModel model = saying(STORY).build();
    Scheduler scheduler = start(model);
    Recorder second = new Recorder();
    submit(
        scheduler,
        1,
        new Recorder(
            event -> {
              if (event instanceof GenerationEvent.Completed) {
                submit(scheduler, 2, second);
              }
            }));
    second.awaitEnd();
    assertThat(second.text()).isEqualTo(STORY);
    close(scheduler, model);
  }

  @Test
  void aFailureOfTheDeviceDoesNotEndTheThread() {
    ScriptedModel model = saying(STORY).build();
    model.failPass(1);
    Scheduler scheduler = start(model);
    Recorder first = submit(scheduler, 1, new Recorder());
    first.awaitEnd();
    assertThat(scheduler.isAlive()).isTrue();
    Recorder second = submit(scheduler, 2, new Recorder());
    second.awaitEnd();
    assertThat(first.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(second.text()).isEqualTo(STORY);
    close(scheduler, model);
    assertThat(scheduler.isAlive()).isFalse();
  }
}
