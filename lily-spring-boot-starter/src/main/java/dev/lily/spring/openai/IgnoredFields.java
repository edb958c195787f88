package dev.lily.spring.openai;

import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.springframework.web.reactive.function.server.ServerRequest;

/**
 * Tells a client in the header {@code x-ignored-fields} which fields of its request had no effect.
 */
final class IgnoredFields {
  static final String HEADER = "x-ignored-fields";

  private static final int MOST = 32;

  /** Whatever a client calls its fields, a header stays a header. */
  private static final Pattern PLAIN = Pattern.compile("[A-Za-z0-9._-]{1,64}");

  private IgnoredFields() {}

  static void report(List<String> names, ServerRequest request) {
    String shown =
        names.stream()
            .limit(MOST)
            .map(name -> PLAIN.matcher(name).matches() ? name : "?")
            .collect(Collectors.joining(", "));
    if (!shown.isEmpty()) {
      request
          .exchange()
          .getResponse()
          .getHeaders()
          .set(HEADER, names.size() > MOST ? shown + ", ..." : shown);
    }
  }
}
