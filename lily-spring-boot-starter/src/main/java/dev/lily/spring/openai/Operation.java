package dev.lily.spring.openai;

/** One of the API's operations that let the model write. Thread-safe. */
@FunctionalInterface
interface Operation {
  /**
   * Reads a body. Renders and tokenises nothing yet, so that the engine may still refuse the
   * result.
   *
   * @throws ApiException if a field has the wrong type or a value that is not supported
   * @throws RuntimeException one of the engine's exceptions if its rules are broken
   */
  AskedAnswer read(FieldReader fields);
}
