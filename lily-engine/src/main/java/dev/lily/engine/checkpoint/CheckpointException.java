package dev.lily.engine.checkpoint;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** A model directory cannot be used. The message names file, value, rule and remedy. */
public final class CheckpointException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** What kind of trouble it is, so that callers can advise. */
  public enum Kind {
    /** The directory or a file of it does not exist or cannot be read. */
    NOT_FOUND,
    /** A file is damaged, incomplete or not what its name says. */
    CORRUPT,
    /** A sound file of a model, dtype or quantisation that Lily does not run. */
    UNSUPPORTED
  }

  private final Kind kind;
  private final transient @Nullable Path file;

  public CheckpointException(Kind kind, @Nullable Path file, String message) {
    this(kind, file, message, null);
  }

  public CheckpointException(
      Kind kind, @Nullable Path file, String message, @Nullable Throwable cause) {
    super(file == null ? message : file + ": " + message, cause);
    this.kind = kind;
    this.file = file;
  }

  public Kind kind() {
    return kind;
  }

  /** The file or directory in question. */
  public @Nullable Path file() {
    return file;
  }
}
