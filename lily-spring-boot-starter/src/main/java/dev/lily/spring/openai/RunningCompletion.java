package dev.lily.spring.openai;

import dev.lily.engine.generation.DeadlineExceededException;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationException;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.spring.AnswerRecorder;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * The choices of one completion while the engine works on them. Their events go through one bounded
 * buffer: while {@value #BUFFERED_EVENTS} a choice wait for the client, the engine pauses these
 * sessions and no others. What the engine thread does here never blocks and runs no code of the
 * client's side.
 */
final class RunningCompletion {
  static final int BUFFERED_EVENTS = 32;

  private final String model;
  private final AnswerRecorder recorder;
  private final List<GenerationHandle> handles = new CopyOnWriteArrayList<>();
  private final EventBuffer<ChoiceEvent> buffer;
  private final Sinks.Many<ChoiceEvent> events;
  private final Sinks.Empty<Void> started = Sinks.empty();
  private final Sinks.Empty<Void> stalled = Sinks.empty();
  private volatile boolean cancelled;
  private volatile boolean hasStarted;

  // Engine thread only.
  private int running;
  private boolean ended;

  private RunningCompletion(String model, int choices, AnswerRecorder recorder) {
    this.model = model;
    this.recorder = recorder;
    running = choices;
    buffer = new EventBuffer<>(BUFFERED_EVENTS * choices, this::wake);
    // Unsafe, that is not serialised: all events come on the engine's one thread.
    events = Sinks.unsafe().many().unicast().onBackpressureBuffer(buffer);
  }

  /**
   * Submits all choices on the subscriber's thread, which must be allowed to compute. Either all
   * are taken in or the result is an error; cancelling at any time cancels them.
   *
   * @param model name of the model that answers
   */
  static Mono<RunningCompletion> start(
      String model,
      GenerationSubmitter engine,
      List<GenerationRequest> choices,
      AnswerRecorder recorder) {
    return Mono.create(
        sink -> {
          RunningCompletion completion = new RunningCompletion(model, choices.size(), recorder);
          sink.onCancel(completion::cancel);
          try {
            completion.submit(engine, choices);
          } catch (RuntimeException e) {
            completion.cancel();
            sink.error(e);
            return;
          }
          sink.success(completion);
        });
  }

  private void submit(GenerationSubmitter engine, List<GenerationRequest> choices) {
    for (int i = 0; i < choices.size() && !cancelled; i++) {
      handles.add(engine.submit(choices.get(i), new Choice(i)));
    }
    if (cancelled) {
      cancel();
    }
  }

  /** Name of the model that answers. */
  String model() {
    return model;
  }

  /** Stops all choices within one step. */
  void cancel() {
    cancelled = true;
    handles.forEach(GenerationHandle::cancel);
  }

  private void wake() {
    handles.forEach(GenerationHandle::wake);
  }

  /**
   * Ends with the first output, or with the failure if that comes first. Signals on the engine
   * thread; move on at once.
   */
  Mono<Void> started() {
    return started.asMono();
  }

  /** Whether there is output. */
  boolean hasStarted() {
    return hasStarted;
  }

  /**
   * The events of all choices in order, for one subscriber; ends after the last choice's end, or
   * with the first failure. Cancelling stops the engine's work.
   */
  Flux<ChoiceEvent> events() {
    return events.asFlux().doOnCancel(this::cancel);
  }

  /**
   * Never ends but with an error: the client took nothing for too long, so that no event can tell
   * it. Signals on the engine thread.
   */
  Mono<Void> stalled() {
    return stalled.asMono();
  }

  private void accept(int choice, GenerationEvent event) {
    if (ended) {
      return;
    }
    switch (event) {
      case GenerationEvent.PromptProgress _ -> {}
      case GenerationEvent.Output _ -> next(choice, event);
      case GenerationEvent.Completed end -> {
        recorder.record(end.usage(), end.timings());
        next(choice, event);
        running--;
        if (running == 0) {
          ended = true;
          events.tryEmitComplete();
        }
      }
      case GenerationEvent.Failed failed -> fail(failed.cause());
    }
  }

  private void next(int choice, GenerationEvent event) {
    events.tryEmitNext(new ChoiceEvent(choice, event));
    if (!hasStarted) {
      hasStarted = true;
      started.tryEmitEmpty();
    }
  }

  private void fail(GenerationException cause) {
    ended = true;
    cancel();
    if (cause instanceof DeadlineExceededException && buffer.isFull()) {
      stalled.tryEmitError(cause);
    }
    started.tryEmitError(cause);
    events.tryEmitError(cause);
  }

  /** The engine's way to one choice. */
  private final class Choice implements GenerationListener {
    private final int index;

    Choice(int index) {
      this.index = index;
    }

    @Override
    public void onEvent(GenerationEvent event) {
      accept(index, event);
    }

    @Override
    public boolean isReady() {
      return !buffer.isFull();
    }
  }
}
