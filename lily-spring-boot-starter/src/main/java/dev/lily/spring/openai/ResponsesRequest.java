package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationRequest;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/**
 * What a client asks of {@code responses}.
 *
 * @param request in the engine's words
 * @param input where in the request each message came from
 * @param stream whether the answer is sent piece by piece
 * @param repeated what the answer repeats of the request
 */
record ResponsesRequest(
    GenerationRequest request, ResponsesInput input, boolean stream, Repeated repeated) {

  /** What the answer repeats of the request, as it was sent. */
  record Repeated(
      @Nullable String instructions,
      @Nullable Integer maxOutputTokens,
      @Nullable String effort,
      @Nullable String summary,
      @Nullable Double temperature,
      @Nullable Double topP,
      JsonNode toolChoice,
      JsonNode tools,
      JsonNode metadata,
      JsonNode format) {}
}
