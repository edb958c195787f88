package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;

/** What the endpoint needs of an engine: {@code LilyEngine::submit}. */
@FunctionalInterface
interface GenerationSubmitter {
  /**
   * Submits a request and returns once its prompt is rendered and tokenised.
   *
   * @throws dev.lily.engine.generation.GenerationException if it is refused
   */
  GenerationHandle submit(GenerationRequest request, GenerationListener listener);
}
