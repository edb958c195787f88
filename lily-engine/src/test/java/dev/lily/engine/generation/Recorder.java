package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.model.Signal;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A listener that keeps what it hears, and does with each event what the test says. */
final class Recorder implements GenerationListener {
  private final List<GenerationEvent> events = new CopyOnWriteArrayList<>();
  private final Consumer<GenerationEvent> reaction;
  private final Signal ended = new Signal();
  private final Signal asked = new Signal();
  private volatile boolean ready = true;
  private volatile @Nullable Thread engineThread;
  private @Nullable GenerationHandle handle;

  Recorder(Consumer<GenerationEvent> reaction) {
    this.reaction = reaction;
  }

  Recorder() {
    this(_ -> {});
  }

  Recorder submittedAs(GenerationHandle value) {
    handle = value;
    return this;
  }

  GenerationHandle handle() {
    if (handle == null) {
      throw new AssertionError("Not submitted");
    }
    return handle;
  }

  @Override
  public void onEvent(GenerationEvent event) {
    events.add(event);
    if (event instanceof GenerationEvent.Completed || event instanceof GenerationEvent.Failed) {
      ended.fire();
    }
    reaction.accept(event);
  }

  @Override
  public boolean isReady() {
    engineThread = Thread.currentThread();
    asked.fire();
    return ready;
  }

  Recorder ready(boolean value) {
    ready = value;
    return this;
  }

  /** Waits until the engine asks whether more can be taken, so until the session runs. */
  Recorder awaitAsked() {
    asked.await();
    return this;
  }

  /** The thread that asked. */
  Thread engineThread() {
    return Objects.requireNonNull(engineThread);
  }

  void awaitEnd() {
    ended.await();
  }

  List<GenerationEvent> events() {
    return events;
  }

  String text() {
    return parts(ResponsePart.AnswerText.class).stream()
        .map(ResponsePart.AnswerText::text)
        .reduce("", String::concat);
  }

  String reasoning() {
    return parts(ResponsePart.ReasoningText.class).stream()
        .map(ResponsePart.ReasoningText::text)
        .reduce("", String::concat);
  }

  <P extends ResponsePart> List<P> parts(Class<P> kind) {
    return outputs().stream()
        .flatMap(output -> output.parts().stream())
        .filter(kind::isInstance)
        .map(kind::cast)
        .toList();
  }

  List<GenerationEvent.Output> outputs() {
    return events.stream()
        .filter(GenerationEvent.Output.class::isInstance)
        .map(GenerationEvent.Output.class::cast)
        .toList();
  }

  List<TokenLogprob> logprobs() {
    return outputs().stream().flatMap(output -> output.logprobs().stream()).toList();
  }

  /** The last event of an answer, after checking that it is the only last one. */
  GenerationEvent.Completed completed() {
    assertThat(end()).isInstanceOf(GenerationEvent.Completed.class);
    return (GenerationEvent.Completed) end();
  }

  /** The cause of the failure, after checking that nothing else came last. */
  GenerationException failure() {
    assertThat(end()).isInstanceOf(GenerationEvent.Failed.class);
    return ((GenerationEvent.Failed) end()).cause();
  }

  boolean hasEnded() {
    return events.stream().anyMatch(Recorder::isEnd);
  }

  private GenerationEvent end() {
    assertThat(events.stream().filter(Recorder::isEnd)).hasSize(1);
    assertThat(events.getLast()).matches(Recorder::isEnd);
    assertThat(handle().isDone()).isTrue();
    return events.getLast();
  }

  private static boolean isEnd(GenerationEvent event) {
    return event instanceof GenerationEvent.Completed || event instanceof GenerationEvent.Failed;
  }
}
