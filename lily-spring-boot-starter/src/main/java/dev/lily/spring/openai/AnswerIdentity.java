package dev.lily.spring.openai;

/**
 * What all pieces of an answer have in common.
 *
 * @param created seconds since the epoch
 * @param model name of the loaded model
 * @param logprobs whether log-probabilities were asked for
 */
record AnswerIdentity(String id, long created, String model, boolean logprobs) {}
