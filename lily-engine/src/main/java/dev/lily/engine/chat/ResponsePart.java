package dev.lily.engine.chat;

/** A piece of a model's answer. Joined, the texts of a kind are that kind's whole text. */
public sealed interface ResponsePart {
  /** Thought. */
  record ReasoningText(String text) implements ResponsePart {}

  /** Answer. */
  record AnswerText(String text) implements ResponsePart {}

  /** A complete call. */
  record CalledTool(ToolCall call) implements ResponsePart {}

  /**
   * A call that the end of the answer cut off; must not be executed.
   *
   * @param text what the model wrote of it
   */
  record IncompleteToolCall(String text) implements ResponsePart {}
}
