package dev.lily.spring.openai;

import static org.springframework.web.reactive.function.server.RequestPredicates.path;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.AnswerRecorder;
import java.time.InstantSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.HandlerFunction;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * The routes of an OpenAI-compatible API: {@code POST /chat/completions}, {@code GET /models} and
 * {@code GET /models/ID} below a base path. Below {@code /chat} and {@code /models}, and where
 * other well-known parts of the API would be, everything else is answered with an error in the
 * API's shape; all other paths are left to the application.
 */
public final class OpenAiEndpoint {
  private static final Logger log = LoggerFactory.getLogger(OpenAiEndpoint.class);

  private OpenAiEndpoint() {}

  /**
   * The routes over an engine, which they do not own.
   *
   * @param recorder takes usage and timings of each choice
   */
  public static RouterFunction<ServerResponse> routes(
      LilyEngine engine, OpenAiOptions options, AnswerRecorder recorder) {
    return routes(
        engine.model().name(),
        engine::submit,
        options,
        recorder,
        Schedulers.boundedElastic(),
        InstantSource.system());
  }

  static RouterFunction<ServerResponse> routes(
      String model,
      GenerationSubmitter engine,
      OpenAiOptions options,
      AnswerRecorder recorder,
      Scheduler scheduler,
      InstantSource clock) {
    ChatCompletionsHandler completions =
        new ChatCompletionsHandler(model, engine, options, recorder, scheduler, clock);
    ModelsHandler models = new ModelsHandler(model, options, clock.instant().getEpochSecond());
    String base = options.basePath();
    return RouterFunctions.route()
        .POST(base + "/chat/completions", completions::handle)
        .GET(base + "/models", models::list)
        .GET(base + "/models/{" + ModelsHandler.ID + "}", models::get)
        .route(path(base + "/chat/completions"), notAllowed(HttpMethod.POST))
        .route(path(base + "/models").or(path(base + "/models/{id}")), notAllowed(HttpMethod.GET))
        .route(
            path(base + "/chat/**")
                .or(path(base + "/models/**"))
                .or(path(base + "/completions"))
                .or(path(base + "/responses/**"))
                .or(path(base + "/embeddings")),
            OpenAiEndpoint::notFound)
        .filter(OpenAiEndpoint::answerErrors)
        .filter(new AccessFilter(options))
        .build();
  }

  private static HandlerFunction<ServerResponse> notAllowed(HttpMethod allowed) {
    return request ->
        Mono.error(
            ApiError.of(
                    HttpStatus.METHOD_NOT_ALLOWED,
                    "The method %s is not allowed here; use %s."
                        .formatted(request.method(), allowed),
                    null,
                    "method_not_allowed")
                .with(HttpHeaders.ALLOW, allowed.name())
                .exception());
  }

  private static Mono<ServerResponse> notFound(ServerRequest request) {
    return Mono.error(
        ApiError.of(
                HttpStatus.NOT_FOUND,
                "There is nothing at %s. This server has chat/completions and models."
                    .formatted(Quote.of(request.path())),
                null,
                "unknown_url")
            .exception());
  }

  private static Mono<ServerResponse> answerErrors(
      ServerRequest request, HandlerFunction<ServerResponse> next) {
    return Mono.defer(() -> next.handle(request)).onErrorResume(failure -> error(request, failure));
  }

  private static Mono<ServerResponse> error(ServerRequest request, Throwable failure) {
    ApiError error = ErrorMapper.map(failure);
    if (ErrorMapper.isInternal(error)) {
      log.error("{} {} failed", request.method(), request.path(), failure);
    } else {
      log.debug("{} {} is refused: {}", request.method(), request.path(), error.message());
    }
    return ServerResponse.status(error.status())
        .contentType(MediaType.APPLICATION_JSON)
        .headers(headers -> error.headers().forEach(headers::set))
        .bodyValue(WireJson.bytes(error.body()));
  }
}
