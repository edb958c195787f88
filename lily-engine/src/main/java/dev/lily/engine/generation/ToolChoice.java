package dev.lily.engine.generation;

/** Whether the model has to call tools. To forbid it, leave the tools out of the conversation. */
public sealed interface ToolChoice {
  /** The model decides. */
  ToolChoice AUTO = new Auto();

  /** At least one tool must be called. */
  ToolChoice REQUIRED = new Required();

  /** The model decides. */
  record Auto() implements ToolChoice {}

  /** At least one tool must be called. */
  record Required() implements ToolChoice {}

  /** This tool must be called. */
  record Named(String tool) implements ToolChoice {}
}
