package dev.lily.engine.chat;

import java.util.List;
import java.util.function.Consumer;

/**
 * Splits a model's text into reasoning, answer and tool calls, however the text is cut. No part
 * ever contains a piece of a tag. One per answer; not thread-safe.
 */
public final class ResponseParser {

  /**
   * @param tools of the request; they type the arguments
   * @param thinking whether the text starts inside the reasoning
   * @param sink takes the parts in order
   */
  public ResponseParser(List<ToolDefinition> tools, boolean thinking, Consumer<ResponsePart> sink) {
    throw new UnsupportedOperationException();
  }

  public void accept(String text) {
    throw new UnsupportedOperationException();
  }

  /**
   * Ends the answer and releases what was held back.
   *
   * @param truncated whether the answer was cut by a limit, so that an open call is incomplete
   */
  public void finish(boolean truncated) {
    throw new UnsupportedOperationException();
  }

  /** Whether the text so far is inside the reasoning. */
  public boolean isReasoning() {
    throw new UnsupportedOperationException();
  }
}
