package dev.lily.spring.ai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.ResultCollector;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.model.ChatResponse;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxSink;
import reactor.core.scheduler.Scheduler;

/**
 * One answer as a stream. The engine thread pushes chunks into a sink; they leave it on the
 * scheduler, so that a subscriber's work never runs on the engine thread. While {@value #PREFETCH}
 * chunks wait for the subscriber the engine pauses this session; demand wakes it. Cancelling the
 * subscription cancels the request.
 */
final class AnswerStream implements GenerationListener {

  /** Chunks that may wait between engine and subscriber, besides those of passes in flight. */
  static final int PREFETCH = 32;

  private final Function<GenerationListener, GenerationHandle> submission;
  private final ChatResponseMapper mapper;
  private final String id;
  private final Consumer<GenerationResult> onCompleted;
  private final FluxSink<ChatResponse> sink;
  private final ResultCollector answer = new ResultCollector();
  private final StringBuilder reasoning = new StringBuilder();
  private String reasoningSoFar = "";
  private volatile @Nullable GenerationHandle handle;
  private volatile boolean ended;

  private AnswerStream(
      Function<GenerationListener, GenerationHandle> submission,
      ChatResponseMapper mapper,
      String id,
      Consumer<GenerationResult> onCompleted,
      FluxSink<ChatResponse> sink) {
    this.submission = submission;
    this.mapper = mapper;
    this.id = id;
    this.onCompleted = onCompleted;
    this.sink = sink;
  }

  /**
   * A stream that submits when it is subscribed to, once per subscription.
   *
   * @param submission submits a request whose events go to the listener; runs on the scheduler,
   *     because rendering and tokenising a long prompt takes time
   * @param onCompleted takes the whole answer on the engine thread, before the last chunk
   */
  static Flux<ChatResponse> of(
      Function<GenerationListener, GenerationHandle> submission,
      ChatResponseMapper mapper,
      String id,
      Consumer<GenerationResult> onCompleted,
      Scheduler scheduler) {
    return Flux.<ChatResponse>create(
            sink -> new AnswerStream(submission, mapper, id, onCompleted, sink).start(scheduler))
        .publishOn(scheduler, PREFETCH);
  }

  private void start(Scheduler scheduler) {
    sink.onRequest(demand -> wake());
    sink.onCancel(this::cancel);
    scheduler.schedule(this::submit);
  }

  private void submit() {
    if (sink.isCancelled()) {
      return;
    }
    try {
      handle = submission.apply(this);
    } catch (Throwable e) {
      sink.error(e);
      return;
    }
    // Demand or a cancellation may have come while there was no handle to tell.
    if (sink.isCancelled()) {
      cancel();
    } else {
      wake();
    }
  }

  private void wake() {
    GenerationHandle submitted = handle;
    if (submitted != null) {
      submitted.wake();
    }
  }

  private void cancel() {
    GenerationHandle submitted = handle;
    if (submitted != null && !ended) {
      submitted.cancel();
    }
  }

  @Override
  public boolean isReady() {
    return sink.requestedFromDownstream() > 0;
  }

  @Override
  public void onEvent(GenerationEvent event) {
    answer.onEvent(event);
    switch (event) {
      case GenerationEvent.PromptProgress _ -> {}
      case GenerationEvent.Output output -> emit(output);
      case GenerationEvent.Completed _ -> {
        ended = true;
        GenerationResult result = answer.result();
        onCompleted.accept(result);
        sink.next(mapper.lastChunk(id, result));
        sink.complete();
      }
      case GenerationEvent.Failed failed -> {
        ended = true;
        if (!sink.isCancelled()) {
          sink.error(failed.cause());
        }
      }
    }
  }

  /** Sends the text and the reasoning of an output, if it has any; tool calls come at the end. */
  private void emit(GenerationEvent.Output output) {
    String text = "";
    for (ResponsePart part : output.parts()) {
      switch (part) {
        case ResponsePart.AnswerText answered -> text = text.concat(answered.text());
        case ResponsePart.ReasoningText thought -> reasoning.append(thought.text());
        case ResponsePart.CalledTool _, ResponsePart.IncompleteToolCall _ -> {}
      }
    }
    boolean thought = reasoning.length() != reasoningSoFar.length();
    if (thought) {
      reasoningSoFar = reasoning.toString();
    }
    if (thought || !text.isEmpty()) {
      sink.next(mapper.chunk(id, text, reasoningSoFar));
    }
  }
}
