package dev.lily.engine.generation;

/** The engine is closing or closed. */
public final class EngineClosedException extends GenerationException {
  private static final long serialVersionUID = 1L;

  public EngineClosedException(String message) {
    super(message, null);
  }
}
