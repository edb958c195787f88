package dev.lily.engine.sampling;

import java.util.Objects;

/**
 * Holder of one sampling result, made once and filled by every {@link Sampler#sample} it is given
 * to. Log-probabilities are natural and of the model's own distribution, the softmax of the logits
 * before any option or mask. Not thread-safe.
 */
public final class SampledToken {
  private int token = -1;
  private float logprob = Float.NaN;
  private int numTopLogprobs;
  final int[] topTokens = new int[SamplingParameters.MAX_TOP_LOGPROBS];
  final float[] topLogprobs = new float[SamplingParameters.MAX_TOP_LOGPROBS];

  /** The chosen token, or -1 if nothing was sampled yet. */
  public int token() {
    return token;
  }

  /** Log-probability of the chosen token; NaN if none was asked for. */
  public float logprob() {
    return logprob;
  }

  /**
   * Number of alternatives: as many as asked for, or as there are tokens with a logit above
   * negative infinity.
   */
  public int numTopLogprobs() {
    return numTopLogprobs;
  }

  /** The {@code rank}-th likeliest token, from 0, the lower id first among equals. */
  public int topToken(int rank) {
    return topTokens[Objects.checkIndex(rank, numTopLogprobs)];
  }

  /** Log-probability of {@link #topToken}. */
  public float topLogprob(int rank) {
    return topLogprobs[Objects.checkIndex(rank, numTopLogprobs)];
  }

  /** Forgets everything. */
  public void clear() {
    set(-1);
  }

  void set(int token) {
    this.token = token;
    logprob = Float.NaN;
    numTopLogprobs = 0;
  }

  void setLogprobs(float logprob, int numTopLogprobs) {
    this.logprob = logprob;
    this.numTopLogprobs = numTopLogprobs;
  }
}
