package dev.lily.engine.model;

import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;

/**
 * A model as the scheduler sees it: limits, state, and one forward pass. Engine thread only. A
 * scripted implementation drives the scheduler's tests.
 */
public interface LanguageModel extends AutoCloseable {
  /** The largest plan {@link #forward} takes. */
  PassLimits limits();

  /** Sizes of the state pool. */
  StateLayout layout();

  /** The pool all sequences of this model live in. */
  StatePool states();

  /** Passes that may be submitted before the first must be awaited. */
  int maxPassesInFlight();

  /**
   * Runs the plan. Rows with a sampling slot have a token chosen; it is the sequence's next {@link
   * RowPlan#PREVIOUS_TOKEN}. The caller advances the states of the sequences in the plan.
   *
   * @throws dev.lily.engine.backend.BackendException if the pass cannot be submitted
   */
  PendingPass forward(RowPlan plan);

  @Override
  void close();
}
