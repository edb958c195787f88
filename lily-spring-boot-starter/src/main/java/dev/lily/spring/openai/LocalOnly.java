package dev.lily.spring.openai;

import java.util.List;
import org.springframework.web.reactive.function.server.ServerRequest;

/** The header by which a client keeps its request in this process. */
final class LocalOnly {
  static final String HEADER = "X-Lily-Local-Only";

  private LocalOnly() {}

  /**
   * Whether the client asks for it. A value that could be meant so is never taken for the opposite.
   *
   * @throws ApiException if the value is neither true nor false
   */
  static boolean isAsked(ServerRequest request) {
    List<String> values = request.headers().header(HEADER);
    if (values.isEmpty() || values.equals(List.of("false"))) {
      return false;
    }
    if (values.equals(List.of("true"))) {
      return true;
    }
    throw ApiError.invalidValue(
            HEADER,
            "The header %s is %s; it must be true or false."
                .formatted(HEADER, Quote.of(String.join(", ", values))))
        .exception();
  }
}
