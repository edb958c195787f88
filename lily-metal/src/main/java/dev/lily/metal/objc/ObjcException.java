package dev.lily.metal.objc;

import dev.lily.engine.backend.BackendException;
import org.jspecify.annotations.Nullable;

/** The runtime, a class or a function that a call needs is not there. */
public final class ObjcException extends BackendException {
  private static final long serialVersionUID = 1L;

  ObjcException(String message) {
    super(message);
  }

  ObjcException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }

  /** What a downcall handle threw: errors and unchecked exceptions pass, nothing else can occur. */
  static RuntimeException unexpected(Throwable thrown) {
    if (thrown instanceof Error error) {
      throw error;
    }
    return thrown instanceof RuntimeException unchecked
        ? unchecked
        : new ObjcException("Calling a native function: " + thrown, thrown);
  }
}
