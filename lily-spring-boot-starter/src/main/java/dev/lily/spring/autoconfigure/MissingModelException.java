package dev.lily.spring.autoconfigure;

/** {@code lily.model} is not set. */
final class MissingModelException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  MissingModelException() {
    super("Opening a model: the property lily.model is not set; it must name a model directory");
  }
}
