package dev.lily.spring.openai;

import static org.springframework.web.reactive.function.server.RequestPredicates.path;

import dev.lily.engine.LilyEngine;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.RequestOverflow;
import java.time.InstantSource;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.web.reactive.function.server.HandlerFunction;
import org.springframework.web.reactive.function.server.RequestPredicate;
import org.springframework.web.reactive.function.server.RequestPredicates;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import org.springframework.web.server.WebFilter;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * The routes of an OpenAI-compatible API below a base path: {@code POST} of {@code
 * /chat/completions}, {@code /completions}, {@code /responses}, {@code /tokenize} and {@code
 * /detokenize}, {@code GET} of {@code /models}, {@code /models/ID} and {@code /openapi.json}. Below
 * these, and where other well-known parts of the API would be, everything else is answered with an
 * error in the API's shape; all other paths are left to the application.
 */
public final class OpenAiEndpoint {
  private static final Logger log = LoggerFactory.getLogger(OpenAiEndpoint.class);

  private OpenAiEndpoint() {}

  /**
   * The routes over an engine, which they do not own.
   *
   * @param recorder takes usage and timings of each choice
   * @param overflow lets another model answer what the engine does not take
   */
  public static RouterFunction<ServerResponse> routes(
      LilyEngine engine, OpenAiOptions options, AnswerRecorder recorder, RequestOverflow overflow) {
    String name = engine.model().name();
    return routes(
        new ServedModel(name, engine.model().contextLength(), engine.tokenizer()),
        new AnswerSource(name, engine::submit, recorder, overflow),
        options,
        Schedulers.boundedElastic(),
        InstantSource.system());
  }

  /**
   * Refuses web pages of foreign origins at the routes' paths. Has to be a filter of the server,
   * since no route sees a preflight request.
   */
  public static WebFilter originFilter(OpenAiOptions options) {
    return new OriginFilter(options);
  }

  static RouterFunction<ServerResponse> routes(
      ServedModel model,
      AnswerSource source,
      OpenAiOptions options,
      Scheduler scheduler,
      InstantSource clock) {
    AnswerIdentities identities = new AnswerIdentities(model.name(), clock);
    Function<Operation, HandlerFunction<ServerResponse>> answering =
        operation -> new AnswerHandler(operation, source, options, scheduler)::handle;
    ModelsHandler models =
        new ModelsHandler(model.name(), options, clock.instant().getEpochSecond());
    TokensHandler tokens = new TokensHandler(model, options, scheduler);
    String base = options.basePath();
    RouterFunctions.Builder routes = RouterFunctions.route();
    post(
        routes,
        base + "/chat/completions",
        answering.apply(new ChatCompletionOperation(identities, options)));
    post(
        routes,
        base + "/completions",
        answering.apply(new TextCompletionOperation(identities, model, options)));
    post(routes, base + "/responses", answering.apply(new ResponsesOperation(identities, options)));
    post(routes, base + "/tokenize", tokens::tokenize);
    post(routes, base + "/detokenize", tokens::detokenize);
    get(routes, base + "/models", models::list);
    get(routes, base + "/models/{" + ModelsHandler.ID + "}", models::get);
    get(routes, base + "/openapi.json", new DescriptionHandler(base)::get);
    return routes
        .route(
            ApiPaths.all(base)
                .map(RequestPredicates::path)
                .reduce(RequestPredicate::or)
                .orElseThrow(),
            OpenAiEndpoint::notFound)
        .filter(OpenAiEndpoint::answerErrors)
        .filter(new AccessFilter(options))
        .filter(new RequestIds())
        .build();
  }

  private static void post(
      RouterFunctions.Builder routes, String path, HandlerFunction<ServerResponse> handler) {
    routes.POST(path, handler).route(path(path), notAllowed(HttpMethod.POST));
  }

  private static void get(
      RouterFunctions.Builder routes, String path, HandlerFunction<ServerResponse> handler) {
    routes.GET(path, handler).route(path(path), notAllowed(HttpMethod.GET));
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
                "There is nothing at %s. This server has chat/completions, completions, responses, models, tokenize and detokenize."
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
      log.error(
          "{} {} ({}) failed", request.method(), request.path(), RequestIds.of(request), failure);
    } else {
      log.debug(
          "{} {} ({}) is refused: {}",
          request.method(),
          request.path(),
          RequestIds.of(request),
          error.message());
    }
    return ServerResponse.status(error.status())
        .contentType(MediaType.APPLICATION_JSON)
        .headers(headers -> error.headers().forEach(headers::set))
        .bodyValue(WireJson.bytes(error.body()));
  }
}
