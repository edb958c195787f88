package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationRequest;
import java.util.List;

/**
 * What a client asks, in the engine's words.
 *
 * @param choices one request per choice
 * @param stream whether the answer is sent piece by piece
 * @param includeUsage whether a stream ends with the usage
 */
record CompletionRequest(List<GenerationRequest> choices, boolean stream, boolean includeUsage) {
  CompletionRequest {
    choices = List.copyOf(choices);
  }

  /** Whether the answer reports log-probabilities. */
  boolean logprobs() {
    return choices.getFirst().topLogprobs() != null;
  }
}
