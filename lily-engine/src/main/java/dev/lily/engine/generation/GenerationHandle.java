package dev.lily.engine.generation;

/** The caller's end of a submitted request. Thread-safe. */
public interface GenerationHandle {
  /** Unique within the engine, for logs. */
  String id();

  /**
   * Stops the request within one step. Its listener gets {@code Completed} with {@link
   * FinishReason#CANCELLED}. Does nothing after the end.
   */
  void cancel();

  /** Tells the engine that a consumer which was not ready is ready again. */
  void wake();

  boolean isDone();

  /** Waits for the last event to have been delivered. */
  void await() throws InterruptedException;
}
