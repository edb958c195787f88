package dev.lily.spring;

/** Takes each request that goes to another model, for meters. Thread-safe; must return at once. */
@FunctionalInterface
public interface OverflowRecorder {
  /** Records nothing. */
  OverflowRecorder NONE = (reason, model) -> {};

  /**
   * A request leaves.
   *
   * @param model bean name of the model that gets it
   */
  void record(OverflowReason reason, String model);
}
