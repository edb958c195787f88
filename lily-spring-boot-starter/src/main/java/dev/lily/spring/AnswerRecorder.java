package dev.lily.spring;

import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;

/** Takes the numbers of each finished answer, for meters. Thread-safe; must return at once. */
@FunctionalInterface
public interface AnswerRecorder {
  /** Records nothing. */
  AnswerRecorder NONE = (usage, timings) -> {};

  /** An answer ended by itself, by a limit or by cancellation. */
  void record(Usage usage, Timings timings);
}
