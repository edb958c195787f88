package dev.lily.engine.generation;

import org.jspecify.annotations.Nullable;

/** The request itself is wrong. */
public final class InvalidRequestException extends GenerationException {
  private static final long serialVersionUID = 1L;

  private final String parameter;

  /**
   * @param parameter what is wrong, in the words of {@link GenerationRequest}, {@code
   *     SamplingOptions} or a path into the messages
   */
  public InvalidRequestException(String parameter, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.parameter = parameter;
  }

  public InvalidRequestException(String parameter, String message) {
    this(parameter, message, null);
  }

  public String parameter() {
    return parameter;
  }
}
