package dev.lily.engine.generation;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Puts the events of one request together. The result may be read by another thread once {@link
 * GenerationHandle#await} has returned; not thread-safe otherwise.
 */
public final class ResultCollector implements GenerationListener {
  private final StringBuilder text = new StringBuilder();
  private final StringBuilder reasoning = new StringBuilder();
  private final StringBuilder incompleteToolCall = new StringBuilder();
  private final List<ToolCall> toolCalls = new ArrayList<>();
  private final List<TokenLogprob> logprobs = new ArrayList<>();
  private GenerationEvent.@Nullable Completed completed;
  private @Nullable GenerationException failure;

  @Override
  public void onEvent(GenerationEvent event) {
    switch (event) {
      case GenerationEvent.PromptProgress _ -> {}
      case GenerationEvent.Output output -> {
        output.parts().forEach(this::take);
        logprobs.addAll(output.logprobs());
      }
      case GenerationEvent.Completed end -> completed = end;
      case GenerationEvent.Failed end -> failure = end.cause();
    }
  }

  private void take(ResponsePart part) {
    switch (part) {
      case ResponsePart.ReasoningText thought -> reasoning.append(thought.text());
      case ResponsePart.AnswerText answer -> text.append(answer.text());
      case ResponsePart.CalledTool called -> toolCalls.add(called.call());
      case ResponsePart.IncompleteToolCall call -> incompleteToolCall.append(call.text());
    }
  }

  /**
   * The whole answer.
   *
   * @throws GenerationException if the request failed
   * @throws IllegalStateException if it has not ended
   */
  public GenerationResult result() {
    if (failure != null) {
      throw failure;
    }
    if (completed == null) {
      throw new IllegalStateException("The request has not ended; await its handle first");
    }
    return new GenerationResult(
        text.toString(),
        reasoning.toString(),
        toolCalls,
        incompleteToolCall.toString(),
        logprobs,
        completed.reason(),
        completed.usage(),
        completed.timings());
  }
}
