package dev.lily.engine.backend;

import org.jspecify.annotations.Nullable;

/** A device refused or failed: out of memory, a failed pass, an unusable configuration. */
public class BackendException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public BackendException(String message) {
    super(message);
  }

  public BackendException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
