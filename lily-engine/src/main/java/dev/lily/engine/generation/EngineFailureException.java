package dev.lily.engine.generation;

/** The engine itself failed on this request, which is a defect; other requests go on. */
public final class EngineFailureException extends GenerationException {
  private static final long serialVersionUID = 1L;

  public EngineFailureException(String message, Throwable cause) {
    super(message, cause);
  }
}
