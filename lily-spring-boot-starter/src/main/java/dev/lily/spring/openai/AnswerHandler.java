package dev.lily.spring.openai;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Answers the requests of one operation. Parsing, rendering, tokenising and the writing of JSON run
 * on the scheduler, neither on an event loop nor on the engine thread. A stream's headers are sent
 * with its first token or, if that takes longer, with the first heartbeat; a failure before that
 * still gets a status of its own. Silence later on, as while a long call is written, is filled with
 * heartbeats too.
 */
final class AnswerHandler {
  private static final Logger log = LoggerFactory.getLogger(AnswerHandler.class);

  private final Operation operation;
  private final AnswerSource source;
  private final Scheduler scheduler;
  private final BodyReader bodies;
  private final Duration heartbeat;

  AnswerHandler(
      Operation operation, AnswerSource source, OpenAiOptions options, Scheduler scheduler) {
    this.operation = operation;
    this.source = source;
    this.scheduler = scheduler;
    bodies = new BodyReader(options.maxRequestBytes(), options.requestTimeout());
    heartbeat = options.heartbeat();
  }

  Mono<ServerResponse> handle(ServerRequest request) {
    return bodies
        .read(request)
        .publishOn(scheduler)
        .map(
            body -> {
              FieldReader fields = FieldReader.of(WireJson.read(body));
              AskedAnswer asked = operation.read(fields);
              IgnoredFields.report(fields.unread(), request);
              return asked;
            })
        .flatMap(
            asked ->
                source
                    .start(asked.choices(), LocalOnly.isAsked(request))
                    .flatMap(
                        running ->
                            asked.stream()
                                ? stream(request, asked, running)
                                : whole(asked.format().apply(running.model()), running))
                    .onErrorMap(asked.failures()));
  }

  private Mono<ServerResponse> whole(AnswerFormat format, RunningCompletion running) {
    return running
        .events()
        .publishOn(scheduler)
        .doOnNext(format::accept)
        .then(Mono.fromSupplier(() -> WireJson.bytes(format.body())))
        .flatMap(
            body -> ServerResponse.ok().contentType(MediaType.APPLICATION_JSON).bodyValue(body));
  }

  private Mono<ServerResponse> stream(
      ServerRequest request, AskedAnswer asked, RunningCompletion running) {
    Mono<ServerResponse> response =
        Mono.defer(() -> EventStreamResponse.of(frames(request, asked, running)));
    return running
        .started()
        .timeout(heartbeat, Mono.empty())
        .publishOn(scheduler)
        .then(response)
        .doOnCancel(running::cancel);
  }

  private Flux<byte[]> frames(ServerRequest request, AskedAnswer asked, RunningCompletion running) {
    AnswerFormat format = asked.format().apply(running.model());
    Flux<byte[]> answer =
        running
            .events()
            .publishOn(scheduler, RunningCompletion.BUFFERED_EVENTS)
            .map(format::frames)
            .startWith(Mono.fromSupplier(format::opening))
            .concatWith(Mono.fromSupplier(format::closing))
            .onErrorResume(failure -> Mono.just(failure(format, asked.failures().apply(failure))))
            .filter(frames -> frames.length > 0);
    return Heartbeats.in(answer, heartbeat, !running.hasStarted())
        .takeUntilOther(stalled(request, format, running));
  }

  private static byte[] failure(AnswerFormat format, Throwable failure) {
    ApiError error = ErrorMapper.map(failure);
    if (ErrorMapper.isInternal(error)) {
      log.error("Stream {} failed", format.id(), failure);
    } else {
      log.info("Stream {} was ended: {}", format.id(), failure.getMessage());
    }
    return format.failure(error);
  }

  /** Breaks the connection of a client that reads nothing; no event could reach it. */
  private Mono<Void> stalled(
      ServerRequest request, AnswerFormat format, RunningCompletion running) {
    return running
        .stalled()
        .publishOn(scheduler)
        .onErrorResume(
            cause -> {
              log.info("Stream {} is dropped: {}", format.id(), cause.getMessage());
              return ServerConnection.close(request) ? Mono.never() : Mono.error(cause);
            });
  }
}
