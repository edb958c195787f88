package dev.lily.engine.generation;

/**
 * The one way out of the engine. Called on the engine thread: must return at once and must not
 * throw (a listener that throws has its request cancelled).
 */
@FunctionalInterface
public interface GenerationListener {
  void onEvent(GenerationEvent event);

  /**
   * Whether the consumer can take more. While it cannot, its session pauses and others go on; the
   * consumer calls {@link GenerationHandle#wake} when it can again. Asked on the engine thread
   * before each step; what passes submitted earlier bring still comes, and so does the last event.
   */
  default boolean isReady() {
    return true;
  }
}
