package dev.lily.engine.sampling;

/**
 * Makes tokens that occurred less likely. First the repetition penalty, for tokens of the prompt
 * and generated ones: a positive logit is divided by it, another multiplied. Then, for a token
 * generated {@code count > 0} times, {@code fma(-frequencyPenalty, count, logit -
 * presencePenalty)}.
 */
final class Penalties {
  private Penalties() {}

  static void apply(SamplerState state, float[] logits) {
    SamplingParameters parameters = state.parameters();
    float repetition = parameters.repetitionPenalty();
    float presence = parameters.presencePenalty();
    float frequency = parameters.frequencyPenalty();
    if (repetition == 1 && presence == 0 && frequency == 0) {
      return;
    }
    for (int i = 0; i < state.numTouched(); i++) {
      int token = state.touched(i);
      float logit = logits[token];
      logit = logit > 0 ? logit / repetition : logit * repetition;
      int count = state.count(token);
      if (count > 0) {
        logit = Math.fma(-frequency, count, logit - presence);
      }
      logits[token] = logit;
    }
  }
}
