package dev.lily.spring.openai;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.web.reactive.function.server.HandlerFilterFunction;
import org.springframework.web.reactive.function.server.HandlerFunction;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;

/**
 * Gives each request an id, the client's own if it sent a plain one, and sends it back in the
 * header {@code x-request-id}.
 */
final class RequestIds implements HandlerFilterFunction<ServerResponse, ServerResponse> {
  static final String HEADER = "x-request-id";

  /** No line breaks, and nothing that is more than a word in a log. */
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9._:-]{1,128}");

  @Override
  public Mono<ServerResponse> filter(ServerRequest request, HandlerFunction<ServerResponse> next) {
    request.exchange().getResponse().getHeaders().set(HEADER, id(request));
    return next.handle(request);
  }

  private static String id(ServerRequest request) {
    String sent = request.headers().firstHeader(HEADER);
    return sent != null && PLAIN.matcher(sent).matches() ? sent : AnswerIdentities.id("req_");
  }

  /** The id that a request was given. */
  static @Nullable String of(ServerRequest request) {
    return request.exchange().getResponse().getHeaders().getFirst(HEADER);
  }
}
