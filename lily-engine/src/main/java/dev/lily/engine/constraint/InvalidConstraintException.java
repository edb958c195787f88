package dev.lily.engine.constraint;

import org.jspecify.annotations.Nullable;

/** A constraint is wrong, contradicts itself, or asks for what constrained decoding cannot do. */
public final class InvalidConstraintException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String path;

  /**
   * @param path JSON pointer of the keyword in the schema; empty for the constraint as a whole
   */
  public InvalidConstraintException(String path, String message, @Nullable Throwable cause) {
    super(path.isEmpty() ? message : "At " + path + ": " + message, cause);
    this.path = path;
  }

  public InvalidConstraintException(String path, String message) {
    this(path, message, null);
  }

  /** JSON pointer of the keyword in the schema; empty for the constraint as a whole. */
  public String path() {
    return path;
  }
}
