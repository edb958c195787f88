package dev.lily.sample;

import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.core.Ordered;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/**
 * Serves only requests for a loopback name, on every path, while the sample listens on the loopback
 * address. It has no log-in; a web page that has its own name resolved to this machine must not
 * reach the model through the visitor's browser.
 */
@Component
@ConditionalOnProperty(name = "server.address", havingValue = "127.0.0.1")
class LoopbackHostFilter implements WebFilter, Ordered {
  private static final Set<String> LOOPBACK = Set.of("localhost", "127.0.0.1", "[::1]");

  @Override
  public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
    if (isLoopback(exchange.getRequest().getHeaders().getFirst("Host"))) {
      return chain.filter(exchange);
    }
    exchange.getResponse().setStatusCode(HttpStatus.FORBIDDEN);
    return exchange.getResponse().setComplete();
  }

  static boolean isLoopback(@Nullable String host) {
    if (host == null) {
      return false;
    }
    int port = host.lastIndexOf(':');
    boolean hasPort = port > host.lastIndexOf(']') && port >= 0;
    return LOOPBACK.contains(hasPort ? host.substring(0, port) : host);
  }

  @Override
  public int getOrder() {
    return Ordered.HIGHEST_PRECEDENCE;
  }
}
