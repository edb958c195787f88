package dev.lily.engine.sampling;

import java.util.Objects;

/**
 * Chooses a token from logits. This class is the definition of sampling: every back end gives the
 * same token for equal logits, parameters, mask, history, seed and step, whatever else it computes
 * beside it.
 *
 * <p>The steps, in this order:
 *
 * <ol>
 *   <li>mask: a disallowed token's logit becomes negative infinity;
 *   <li>{@link LogitBias};
 *   <li>{@link Penalties}: repetition over prompt and generated tokens, presence and frequency over
 *       generated tokens;
 *   <li>if {@linkplain SamplingParameters#isGreedy() greedy}, the largest logit, lowest id on ties,
 *       and nothing further;
 *   <li>{@link TopK}, on logits, the lower id first among equals;
 *   <li>{@link Temperature}, which also takes the exponential;
 *   <li>{@link TopP}, on the distribution of what top-k left;
 *   <li>{@link MinP};
 *   <li>{@link Draw}.
 * </ol>
 *
 * <p>Top-k stands before temperature because temperature changes no order and fewer logits then
 * need an exponential. Each filter leaves at least the likeliest token. A logit that is NaN or
 * negative infinity is never chosen; one that is positive infinity leaves a chance only to others
 * like it. All arithmetic on logits is fp32 in the order written; from the exponential on it is
 * integer, see {@link Weights}.
 *
 * <p>Holds the scratch memory of one thread; {@link #sample} allocates nothing.
 */
public final class Sampler {
  private final int vocabularySize;
  private final float[] adjusted;
  private final Candidates candidates;
  private final TopK topK = new TopK();

  /**
   * @param vocabularySize number of logits, at most {@value Weights#MAX_VOCABULARY_SIZE}
   */
  public Sampler(int vocabularySize) {
    Weights.checkVocabularySize(vocabularySize);
    this.vocabularySize = vocabularySize;
    adjusted = new float[vocabularySize];
    candidates = new Candidates(vocabularySize);
  }

  /**
   * Chooses a token, records it in the state and advances the state's step.
   *
   * @param logits {@code vocabularySize} of them from {@code offset}; left unchanged
   * @param state of the same vocabulary size; unchanged if this throws
   * @param out filled with the token and, if the state's parameters ask for them,
   *     log-probabilities; these are of the model's own distribution, before mask and options
   * @return the token
   * @throws SamplingException if no token can be chosen
   */
  public int sample(float[] logits, int offset, SamplerState state, SampledToken out) {
    Objects.checkFromIndexSize(offset, vocabularySize, logits.length);
    if (state.vocabularySize() != vocabularySize) {
      throw new IllegalArgumentException(
          "Sampling state is for "
              + state.vocabularySize()
              + " tokens; this sampler for "
              + vocabularySize);
    }
    SamplingParameters parameters = state.parameters();
    System.arraycopy(logits, offset, adjusted, 0, vocabularySize);
    state.applyMask(adjusted);
    LogitBias.apply(parameters, adjusted);
    Penalties.apply(state, adjusted);
    int token = parameters.isGreedy() ? TopK.argMax(adjusted, 0, vocabularySize) : draw(state);
    if (token < 0) {
      throw noToken(logits, offset, state);
    }
    out.set(token);
    if (parameters.topLogprobs() >= 0) {
      Logprobs.report(logits, offset, vocabularySize, parameters.topLogprobs(), topK, out);
    }
    state.accept(token);
    return token;
  }

  private int draw(SamplerState state) {
    SamplingParameters parameters = state.parameters();
    topK.select(adjusted, vocabularySize, parameters.topK(), candidates);
    if (candidates.size == 0) {
      return -1;
    }
    Temperature.apply(parameters.temperature(), candidates);
    TopP.apply(parameters.topP(), candidates);
    MinP.apply(parameters.minP(), candidates);
    return Draw.choose(parameters.seed(), state.step(), candidates);
  }

  private SamplingException noToken(float[] logits, int offset, SamplerState state) {
    int numNaN = 0;
    int numUsable = 0;
    for (int id = 0; id < vocabularySize; id++) {
      float logit = logits[offset + id];
      if (Float.isNaN(logit)) {
        numNaN++;
      } else if (logit > Float.NEGATIVE_INFINITY) {
        numUsable++;
      }
    }
    String step = "Cannot choose token " + state.step() + " of the answer: ";
    if (numUsable == 0) {
      return new SamplingException(
          SamplingException.Reason.NO_USABLE_LOGIT,
          step
              + "of "
              + vocabularySize
              + " logits "
              + numNaN
              + " are NaN and the rest negative infinity. The model's result is damaged.");
    }
    return new SamplingException(
        SamplingException.Reason.NOTHING_ALLOWED,
        step
            + "the mask allows "
            + state.numAllowed()
            + " of "
            + vocabularySize
            + " tokens, none of them with a usable logit.");
  }
}
