package dev.lily.engine;

import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import java.time.Duration;

/**
 * A loaded model that answers requests. One engine thread computes; every method here may be called
 * from any thread.
 */
public final class LilyEngine implements AutoCloseable {

  private LilyEngine() {}

  /**
   * Opens a model.
   *
   * @throws dev.lily.engine.checkpoint.CheckpointException if the directory is unusable
   * @throws dev.lily.engine.backend.BackendException if no back end can run it
   * @throws ModelDoesNotFitException if the memory plan exceeds the budget
   */
  public static LilyEngine open(EngineOptions options) {
    throw new UnsupportedOperationException(options.toString());
  }

  /**
   * Submits a request and returns at once; the prompt is rendered, tokenised and checked on the
   * calling thread, so bad input fails here.
   *
   * @throws dev.lily.engine.generation.InvalidRequestException if the request is wrong
   * @throws dev.lily.engine.generation.ContextOverflowException if the prompt is too long
   * @throws dev.lily.engine.generation.EngineBusyException if the queue is full
   * @throws dev.lily.engine.generation.EngineClosedException after {@link #close}
   */
  public GenerationHandle submit(GenerationRequest request, GenerationListener listener) {
    throw new UnsupportedOperationException();
  }

  /**
   * Submits and waits. Interrupting the thread cancels the request.
   *
   * @throws dev.lily.engine.generation.GenerationException as {@link #submit}, or if it fails later
   */
  public GenerationResult generate(GenerationRequest request) {
    throw new UnsupportedOperationException();
  }

  public ModelInfo model() {
    throw new UnsupportedOperationException();
  }

  public MemoryPlan memoryPlan() {
    throw new UnsupportedOperationException();
  }

  public EngineStats stats() {
    throw new UnsupportedOperationException();
  }

  /** Refuses new requests, lets running ones finish for at most {@code grace}, then closes. */
  public void close(Duration grace) {
    throw new UnsupportedOperationException();
  }

  /** Cancels everything and frees the model. Idempotent. */
  @Override
  public void close() {
    close(Duration.ZERO);
  }
}
