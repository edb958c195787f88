package dev.lily.spring.openai;

import java.time.InstantSource;
import java.util.UUID;

/**
 * Names answers.
 *
 * @param model name of the loaded model
 */
record AnswerIdentities(String model, InstantSource clock) {

  /**
   * A new name.
   *
   * @param prefix tells the kind, for instance {@code chatcmpl-}
   * @param logprobs whether log-probabilities were asked for
   */
  AnswerIdentity next(String prefix, boolean logprobs) {
    return new AnswerIdentity(id(prefix), clock.instant().getEpochSecond(), model, logprobs);
  }

  /** A prefix and 32 random hexadecimal digits. */
  static String id(String prefix) {
    return prefix + UUID.randomUUID().toString().replace("-", "");
  }
}
