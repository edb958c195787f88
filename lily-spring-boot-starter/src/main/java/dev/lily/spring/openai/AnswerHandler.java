package dev.lily.spring.openai;

import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.openai.dto.ChatCompletion;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Answers {@code POST /chat/completions}. Parsing, rendering, tokenising and the writing of JSON
 * run on the scheduler, neither on an event loop nor on the engine thread. A stream's headers are
 * sent with its first token or, if that takes longer, with the first heartbeat; a failure before
 * that still gets a status of its own.
 */
final class ChatCompletionsHandler {
  private static final Logger log = LoggerFactory.getLogger(ChatCompletionsHandler.class);

  private final String model;
  private final GenerationSubmitter engine;
  private final AnswerRecorder recorder;
  private final Scheduler scheduler;
  private final InstantSource clock;
  private final BodyReader bodies;
  private final CompletionRequestMapper requests;
  private final Duration heartbeat;

  ChatCompletionsHandler(
      String model,
      GenerationSubmitter engine,
      OpenAiOptions options,
      AnswerRecorder recorder,
      Scheduler scheduler,
      InstantSource clock) {
    this.model = model;
    this.engine = engine;
    this.recorder = recorder;
    this.scheduler = scheduler;
    this.clock = clock;
    bodies = new BodyReader(options.maxRequestBytes());
    requests = new CompletionRequestMapper(model, options);
    heartbeat = options.heartbeat();
  }

  Mono<ServerResponse> handle(ServerRequest request) {
    return bodies
        .read(request)
        .publishOn(scheduler)
        .map(body -> requests.map(WireJson.read(body)))
        .flatMap(
            asked ->
                RunningCompletion.start(engine, asked.choices(), recorder)
                    .flatMap(
                        running ->
                            asked.stream()
                                ? stream(request, asked, running)
                                : whole(asked, running)));
  }

  private AnswerIdentity identity(CompletionRequest asked) {
    return new AnswerIdentity(
        "chatcmpl-" + UUID.randomUUID().toString().replace("-", ""),
        clock.instant().getEpochSecond(),
        model,
        asked.logprobs());
  }

  private Mono<ServerResponse> whole(CompletionRequest asked, RunningCompletion running) {
    AnswerIdentity identity = identity(asked);
    return running
        .events()
        .publishOn(scheduler)
        .collect(
            () -> new CompletionAssembler(identity, asked.choices().size()),
            CompletionAssembler::accept)
        .flatMap(
            assembler -> {
              ChatCompletion completion = assembler.completion();
              return ServerResponse.ok()
                  .contentType(MediaType.APPLICATION_JSON)
                  .bodyValue(WireJson.bytes(completion));
            });
  }

  private Mono<ServerResponse> stream(
      ServerRequest request, CompletionRequest asked, RunningCompletion running) {
    Mono<ServerResponse> response =
        Mono.defer(() -> EventStreamResponse.of(frames(request, asked, running)));
    return running
        .started()
        .timeout(heartbeat, Mono.empty())
        .publishOn(scheduler)
        .then(response)
        .doOnCancel(running::cancel);
  }

  private Flux<byte[]> frames(
      ServerRequest request, CompletionRequest asked, RunningCompletion running) {
    AnswerIdentity identity = identity(asked);
    CompletionChunkMapper chunks = new CompletionChunkMapper(identity, asked.choices().size());
    Flux<byte[]> answer =
        running
            .events()
            .publishOn(scheduler, RunningCompletion.BUFFERED_EVENTS)
            .map(event -> EventFrames.data(chunks.chunks(event)))
            .concatWith(Mono.fromSupplier(() -> end(asked, chunks)))
            .onErrorResume(failure -> Mono.just(failure(identity, failure)));
    Flux<byte[]> body = running.hasStarted() ? answer : Flux.merge(answer, heartbeats(running));
    return body.takeUntilOther(stalled(request, identity, running));
  }

  private Flux<byte[]> heartbeats(RunningCompletion running) {
    return Flux.interval(Duration.ZERO, heartbeat)
        .onBackpressureDrop()
        .map(_ -> EventFrames.heartbeat())
        .takeUntilOther(running.started().onErrorComplete().publishOn(scheduler));
  }

  private static byte[] end(CompletionRequest asked, CompletionChunkMapper chunks) {
    return EventFrames.last(asked.includeUsage() ? List.of(chunks.usageChunk()) : List.of());
  }

  private static byte[] failure(AnswerIdentity identity, Throwable failure) {
    ApiError error = ErrorMapper.map(failure);
    if (ErrorMapper.isInternal(error)) {
      log.error("Stream {} failed", identity.id(), failure);
    } else {
      log.info("Stream {} was ended: {}", identity.id(), failure.getMessage());
    }
    return EventFrames.data(List.of(error.body()));
  }

  /** Breaks the connection of a client that reads nothing; no event could reach it. */
  private Mono<Void> stalled(
      ServerRequest request, AnswerIdentity identity, RunningCompletion running) {
    return running
        .stalled()
        .publishOn(scheduler)
        .onErrorResume(
            cause -> {
              log.info("Stream {} is dropped: {}", identity.id(), cause.getMessage());
              return ServerConnection.close(request) ? Mono.never() : Mono.error(cause);
            });
  }
}
