package dev.lily.engine;

/** The memory plan exceeds the budget; the message has the numbers and the settings to lower. */
public final class ModelDoesNotFitException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final transient MemoryPlan plan;

  public ModelDoesNotFitException(String message, MemoryPlan plan) {
    super(message);
    this.plan = plan;
  }

  public MemoryPlan plan() {
    return plan;
  }
}
