package dev.lily.engine.backend;

/**
 * A submitted pass. Results may be read after {@link #await} returned and stay valid until the pass
 * after the next one is begun.
 */
public interface PendingPass {
  /**
   * Waits for the device.
   *
   * @throws BackendException if the pass failed; the sequences in it must not be used any more
   */
  void await();

  /**
   * Token sampled from the {@code index}-th logit row; -1 where none was asked, and where none
   * could be chosen (every logit NaN or negative infinity, or the mask allows none with a usable
   * logit), which concerns that sequence alone.
   */
  int token(int index);

  /** Natural log-probability of that token; NaN where none was asked. */
  float logprob(int index);

  /** Alternatives reported for a logit row. */
  int numTopLogprobs(int index);

  /** Token of the {@code rank}-th likeliest alternative, likeliest first. */
  int topToken(int index, int rank);

  /** Natural log-probability of that alternative. */
  float topLogprob(int index, int rank);

  /** Time the device worked on this pass, in nanoseconds. */
  long deviceNanos();
}
