package dev.lily.spring.ai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.TokenLogprob;
import java.util.ArrayList;
import java.util.List;

/**
 * Joins the events of one answer to the result that a blocking call gives. One thread at a time.
 */
final class AnswerAccumulator {

  private final StringBuilder text = new StringBuilder();
  private final StringBuilder reasoning = new StringBuilder();
  private final List<ToolCall> toolCalls = new ArrayList<>();
  private final StringBuilder incompleteToolCall = new StringBuilder();
  private final List<TokenLogprob> logprobs = new ArrayList<>();
  private String reasoningSoFar = "";

  /** Takes output and returns the answer text in it. */
  String add(GenerationEvent.Output output) {
    int start = text.length();
    for (ResponsePart part : output.parts()) {
      switch (part) {
        case ResponsePart.AnswerText answer -> text.append(answer.text());
        case ResponsePart.ReasoningText thought -> reasoning.append(thought.text());
        case ResponsePart.CalledTool called -> toolCalls.add(called.call());
        case ResponsePart.IncompleteToolCall cut -> incompleteToolCall.append(cut.text());
      }
    }
    logprobs.addAll(output.logprobs());
    return text.substring(start);
  }

  /** All reasoning so far; the same string until more comes. */
  String reasoning() {
    if (reasoningSoFar.length() != reasoning.length()) {
      reasoningSoFar = reasoning.toString();
    }
    return reasoningSoFar;
  }

  /** The whole answer. */
  GenerationResult complete(GenerationEvent.Completed completed) {
    return new GenerationResult(
        text.toString(),
        reasoning(),
        toolCalls,
        incompleteToolCall.toString(),
        logprobs,
        completed.reason(),
        completed.usage(),
        completed.timings());
  }
}
