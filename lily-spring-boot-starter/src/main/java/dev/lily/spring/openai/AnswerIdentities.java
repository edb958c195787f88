package dev.lily.spring.openai;

import java.time.InstantSource;
import java.util.HexFormat;
import java.util.concurrent.ThreadLocalRandom;

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

  /** A prefix and 32 random hexadecimal digits. No secret: that would cost an event loop a read. */
  static String id(String prefix) {
    HexFormat hex = HexFormat.of();
    ThreadLocalRandom random = ThreadLocalRandom.current();
    return prefix + hex.toHexDigits(random.nextLong()) + hex.toHexDigits(random.nextLong());
  }
}
