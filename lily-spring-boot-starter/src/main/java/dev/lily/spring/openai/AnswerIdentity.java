package dev.lily.spring.openai;

/**
 * What all pieces of an answer have in common.
 *
 * @param created seconds since the epoch
 * @param model name of the model that answers
 * @param logprobs whether log-probabilities were asked for
 */
record AnswerIdentity(String id, long created, String model, boolean logprobs) {
  /** The same answer, by another model. */
  AnswerIdentity by(String other) {
    return new AnswerIdentity(id, created, other, logprobs);
  }
}
