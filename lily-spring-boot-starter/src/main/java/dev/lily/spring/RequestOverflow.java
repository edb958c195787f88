package dev.lily.spring;

import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import org.jspecify.annotations.Nullable;

/** Lets another model answer requests of the engine. Thread-safe. */
@FunctionalInterface
public interface RequestOverflow {
  /** Keeps every request here. */
  RequestOverflow NONE = (request, refusal) -> null;

  /**
   * Where a request goes that is allowed to leave.
   *
   * @param refusal why the engine does not take it; {@code null} before the engine was asked
   * @return {@code null} if it stays
   */
  @Nullable Destination destination(GenerationRequest request, @Nullable Throwable refusal);

  /** The way of one request to the other model. */
  interface Destination {
    /** The other model's name for clients. */
    String model();

    /**
     * Sends the request. The listener gets events as from an engine, one after the other, with
     * these differences: on the other model's threads, without log-probabilities, without timings,
     * and none at all after a cancellation. Whatever goes wrong over there is {@code Failed} with
     * an {@link OverflowFailedException}.
     */
    GenerationHandle submit(GenerationListener listener);
  }
}
