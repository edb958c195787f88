package dev.lily.engine.generation;

import org.jspecify.annotations.Nullable;

/** A request was refused or failed. Each kind is a subclass. */
public abstract class GenerationException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  protected GenerationException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
