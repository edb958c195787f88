package dev.lily.spring;

import dev.lily.engine.generation.GenerationException;
import org.jspecify.annotations.Nullable;

/** The model to which a request went did not answer it. */
public final class OverflowFailedException extends GenerationException {
  private static final long serialVersionUID = 1L;

  /**
   * @param model bean name of the other model
   * @param what it did
   */
  public OverflowFailedException(String model, String what, @Nullable Throwable cause) {
    super(
        "Chat model '%s', to which the request went by lily.overflow, %s".formatted(model, what),
        cause);
  }
}
