package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationRequest;
import java.util.List;

/**
 * What a client asks of the older operation, in the engine's words.
 *
 * @param choices the first prompt's, then the next one's, and so on
 * @param choicesPerPrompt how many of them each prompt has
 * @param echoes what each prompt's answers begin with; empty texts if not asked for
 * @param topLogprobs how many alternatives are reported; -1 for no log-probabilities at all
 * @param stream whether the answer is sent piece by piece
 * @param includeUsage whether a stream ends with the usage
 */
record TextCompletionRequest(
    List<GenerationRequest> choices,
    int choicesPerPrompt,
    List<String> echoes,
    int topLogprobs,
    boolean stream,
    boolean includeUsage) {
  TextCompletionRequest {
    choices = List.copyOf(choices);
    echoes = List.copyOf(echoes);
  }
}
