package dev.lily.engine.generation;

/** Why an answer ended. */
public enum FinishReason {
  /** The model ended its turn, or a stop string came. */
  STOP,
  /** The token limit or the context window was reached. */
  LENGTH,
  /** The model called tools. */
  TOOL_CALLS,
  /** The caller cancelled. */
  CANCELLED
}
