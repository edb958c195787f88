package dev.lily.spring.openai;

import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;
import reactor.core.publisher.Mono;

/**
 * Refuses requests that web pages of foreign origins make, and lets the ones of allowed origins
 * read the answers (CORS). Requests without an {@code Origin} do not come from a foreign page. A
 * filter of the whole server, because it has to see preflight requests, which reach no route; paths
 * that are not the API's pass.
 */
final class OriginFilter implements WebFilter, Ordered {
  private static final ApiError WRONG_ORIGIN =
      ApiError.of(
          HttpStatus.FORBIDDEN,
          "This server takes requests of web pages only from its own origin and those that lily.openai.allowed-origins names.",
          null,
          "origin_not_allowed");

  private static final String ALLOWED_METHODS = "GET, POST";
  private static final String EXPOSED = "x-request-id, Retry-After";
  private static final String MAX_AGE = "600";

  private final List<PathPattern> paths;
  private final Set<String> allowed;

  OriginFilter(OpenAiOptions options) {
    paths = ApiPaths.all(options.basePath()).map(PathPatternParser.defaultInstance::parse).toList();
    allowed =
        options.allowedOrigins().stream()
            .map(origin -> origin.toLowerCase(Locale.ROOT))
            .collect(Collectors.toUnmodifiableSet());
  }

  /** Before the application's own filters, so that none of them answers a preflight request. */
  @Override
  public int getOrder() {
    return Ordered.HIGHEST_PRECEDENCE + 10;
  }

  @Override
  public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
    ServerHttpRequest request = exchange.getRequest();
    String origin = request.getHeaders().getFirst(HttpHeaders.ORIGIN);
    if (origin == null || !isOfApi(request)) {
      return chain.filter(exchange);
    }
    HttpHeaders headers = exchange.getResponse().getHeaders();
    headers.add(HttpHeaders.VARY, HttpHeaders.ORIGIN);
    if (isSame(origin, request)) {
      return chain.filter(exchange);
    }
    if (!allowed.contains("*") && !allowed.contains(origin.toLowerCase(Locale.ROOT))) {
      return refuse(exchange.getResponse());
    }
    headers.set(HttpHeaders.ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.set(HttpHeaders.ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    return isPreflight(request) ? allow(request, exchange.getResponse()) : chain.filter(exchange);
  }

  private boolean isOfApi(ServerHttpRequest request) {
    return paths.stream().anyMatch(path -> path.matches(request.getPath().pathWithinApplication()));
  }

  /** Whether the page came from this server, whichever name it has for the page. */
  private static boolean isSame(String origin, ServerHttpRequest request) {
    if ("same-origin".equals(request.getHeaders().getFirst("Sec-Fetch-Site"))) {
      return true;
    }
    String host = request.getHeaders().getFirst(HttpHeaders.HOST);
    return host != null && host.equalsIgnoreCase(authority(origin));
  }

  private static @Nullable String authority(String origin) {
    try {
      return URI.create(origin).getRawAuthority();
    } catch (IllegalArgumentException _) {
      return null;
    }
  }

  private static boolean isPreflight(ServerHttpRequest request) {
    return request.getMethod().equals(HttpMethod.OPTIONS)
        && request.getHeaders().containsHeader(HttpHeaders.ACCESS_CONTROL_REQUEST_METHOD);
  }

  private static Mono<Void> allow(ServerHttpRequest request, ServerHttpResponse response) {
    HttpHeaders headers = response.getHeaders();
    headers.set(HttpHeaders.ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    String asked = request.getHeaders().getFirst(HttpHeaders.ACCESS_CONTROL_REQUEST_HEADERS);
    if (asked != null) {
      headers.set(HttpHeaders.ACCESS_CONTROL_ALLOW_HEADERS, asked);
    }
    headers.set(HttpHeaders.ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response.setStatusCode(HttpStatus.NO_CONTENT);
    return response.setComplete();
  }

  private static Mono<Void> refuse(ServerHttpResponse response) {
    response.setStatusCode(WRONG_ORIGIN.status());
    response.getHeaders().setContentType(MediaType.APPLICATION_JSON);
    byte[] body = WireJson.bytes(WRONG_ORIGIN.body());
    return response.writeWith(Mono.fromSupplier(() -> response.bufferFactory().wrap(body)));
  }
}
