package dev.lily.engine.generation;

/** The device failed while it worked on this request; the engine goes on with others if it can. */
public final class DeviceFailureException extends GenerationException {
  private static final long serialVersionUID = 1L;

  public DeviceFailureException(String message, Throwable cause) {
    super(message, cause);
  }
}
