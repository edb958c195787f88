package dev.lily.engine.generation;

import dev.lily.engine.chat.ResponsePart;
import java.util.List;

/**
 * What happens to a request, in order; exactly one {@code Completed} or {@code Failed} comes last.
 */
public sealed interface GenerationEvent {
  /** More of the prompt was read. */
  record PromptProgress(int processedTokens, int promptTokens) implements GenerationEvent {}

  /**
   * Output.
   *
   * @param parts in order; empty when only log-probabilities came
   * @param logprobs of the tokens generated since the last event, if asked for
   */
  record Output(List<ResponsePart> parts, List<TokenLogprob> logprobs) implements GenerationEvent {}

  record Completed(FinishReason reason, Usage usage, Timings timings) implements GenerationEvent {}

  record Failed(GenerationException cause) implements GenerationEvent {}
}
