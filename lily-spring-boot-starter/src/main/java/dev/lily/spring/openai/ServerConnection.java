package dev.lily.spring.openai;

import org.jspecify.annotations.Nullable;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.util.ClassUtils;
import org.springframework.web.reactive.function.server.ServerRequest;
import reactor.netty.Connection;
import reactor.netty.http.server.HttpServerRequest;

/** What only the server itself knows of a request. Empty answers for servers other than Netty. */
final class ServerConnection {
  private static final boolean NETTY =
      ClassUtils.isPresent(
          "reactor.netty.http.server.HttpServerRequest", ServerConnection.class.getClassLoader());

  private ServerConnection() {}

  /** The target as the request line has it, which may be a whole URI. */
  static @Nullable String requestTarget(ServerRequest request) {
    Object server = nativeRequest(request);
    return NETTY && server != null ? Netty.target(server) : null;
  }

  /**
   * Closes the connection at once, without waiting for what is still to be written.
   *
   * @return whether it could
   */
  static boolean close(ServerRequest request) {
    Object server = nativeRequest(request);
    return NETTY && server != null && Netty.close(server);
  }

  private static @Nullable Object nativeRequest(ServerRequest request) {
    ServerHttpRequest http = request.exchange().getRequest();
    try {
      return ServerHttpRequestDecorator.<Object>getNativeRequest(http);
    } catch (IllegalStateException | IllegalArgumentException _) {
      // A test's request without a server.
      return null;
    }
  }

  /** Apart, so that Netty's classes are needed only where they are. */
  private static final class Netty {
    static @Nullable String target(Object server) {
      return server instanceof HttpServerRequest request ? request.uri() : null;
    }

    static boolean close(Object server) {
      if (!(server instanceof Connection connection)) {
        return false;
      }
      var _ = connection.channel().close();
      return true;
    }
  }
}
