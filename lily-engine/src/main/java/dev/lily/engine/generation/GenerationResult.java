package dev.lily.engine.generation;

import dev.lily.engine.chat.ToolCall;
import java.util.List;

/**
 * A whole answer.
 *
 * @param text the answer without reasoning and tool calls
 * @param reasoning the thought; empty if there was none
 * @param toolCalls complete calls only
 * @param incompleteToolCall what was written of a call that the limit cut off; empty if none
 * @param logprobs one per generated token if asked for, else empty
 */
public record GenerationResult(
    String text,
    String reasoning,
    List<ToolCall> toolCalls,
    String incompleteToolCall,
    List<TokenLogprob> logprobs,
    FinishReason finishReason,
    Usage usage,
    Timings timings) {
  public GenerationResult {
    toolCalls = List.copyOf(toolCalls);
    logprobs = List.copyOf(logprobs);
  }
}
