package dev.lily.spring.openai;

import java.util.stream.Stream;

/** The paths that are the API's, whether or not something is there. */
final class ApiPaths {
  private ApiPaths() {}

  /** Patterns of paths, below a base path. */
  static Stream<String> all(String basePath) {
    return Stream.of(
            "/chat/**",
            "/completions",
            "/responses/**",
            "/models/**",
            "/embeddings",
            "/tokenize",
            "/detokenize",
            "/openapi.json")
        .map(path -> basePath + path);
  }
}
