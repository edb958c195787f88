package dev.lily.spring.openai;

import java.net.InetSocketAddress;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.web.reactive.function.server.HandlerFilterFunction;
import org.springframework.web.reactive.function.server.HandlerFunction;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.reactive.function.server.ServerResponse;
import reactor.core.publisher.Mono;

/**
 * Refuses requests without a right key or, if there are no keys, for a foreign host or from another
 * machine.
 */
final class AccessFilter implements HandlerFilterFunction<ServerResponse, ServerResponse> {
  private static final ApiError WRONG_KEY =
      ApiError.of(
              HttpStatus.UNAUTHORIZED,
              "The API key is missing or wrong. Send it in the header Authorization: Bearer KEY.",
              null,
              "invalid_api_key")
          .with(HttpHeaders.WWW_AUTHENTICATE, "Bearer");
  private static final ApiError WRONG_HOST =
      ApiError.of(
          HttpStatus.FORBIDDEN,
          "This server takes requests for this host only if lily.openai.allowed-hosts names it, or if lily.openai.api-keys is set.",
          null,
          "host_not_allowed");

  private static final ApiError NO_KEY =
      ApiError.of(
          HttpStatus.FORBIDDEN,
          "This server has no API keys and so takes requests of its own machine only. Set lily.openai.api-keys to serve others, or lily.openai.allowed-hosts if a proxy asks for them.",
          null,
          "key_required");

  private static final Pattern ABSOLUTE_FORM = Pattern.compile("[A-Za-z]+://([^/?#]*)");

  private final ApiKeys keys;
  private final HostCheck hosts;
  private final boolean checkHost;
  private final boolean onlyThisMachine;

  AccessFilter(OpenAiOptions options) {
    keys = new ApiKeys(options.apiKeys());
    hosts = new HostCheck(options.allowedHosts());
    checkHost = options.checkHost() && keys.isEmpty();
    onlyThisMachine = options.servesThisMachineOnly();
  }

  @Override
  public Mono<ServerResponse> filter(ServerRequest request, HandlerFunction<ServerResponse> next) {
    if (onlyThisMachine && !isFromThisMachine(request)) {
      return Mono.error(NO_KEY.exception());
    }
    if (checkHost && !isForAllowedHost(request)) {
      return Mono.error(WRONG_HOST.exception());
    }
    if (!keys.isEmpty()
        && !keys.accepts(request.headers().firstHeader(HttpHeaders.AUTHORIZATION))) {
      return Mono.error(WRONG_KEY.exception());
    }
    return next.handle(request);
  }

  /**
   * Any client may claim any host, so that alone does not keep other machines out. Where there is
   * no address, the connection is not one of the network.
   */
  private static boolean isFromThisMachine(ServerRequest request) {
    InetSocketAddress remote = request.remoteAddress().orElse(null);
    return remote == null
        || (remote.getAddress() != null && remote.getAddress().isLoopbackAddress());
  }

  /** Whichever way a host is named counts: header, forwarding header or request line. */
  private boolean isForAllowedHost(ServerRequest request) {
    List<String> headers = request.headers().header(HttpHeaders.HOST);
    return headers.size() == 1
        && hosts.allows(headers.getFirst())
        && isAbsentOrAllowed(request.uri().getHost())
        && isAbsentOrAllowed(hostOfTarget(request));
  }

  private boolean isAbsentOrAllowed(@Nullable String host) {
    return host == null || hosts.allows(host);
  }

  private static @Nullable String hostOfTarget(ServerRequest request) {
    String target = ServerConnection.requestTarget(request);
    if (target == null) {
      return null;
    }
    Matcher absolute = ABSOLUTE_FORM.matcher(target);
    return absolute.lookingAt() ? absolute.group(1) : null;
  }
}
