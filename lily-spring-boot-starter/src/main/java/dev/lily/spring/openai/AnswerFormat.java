package dev.lily.spring.openai;

/**
 * How one answer is written: either as a whole, or piece by piece as server-sent events, each
 * method giving no, one or several whole events. Not thread-safe.
 */
interface AnswerFormat {
  byte[] NOTHING = {};

  /** Name of the answer, for the log. */
  String id();

  /** Takes an event of a whole answer. */
  void accept(ChoiceEvent event);

  /** The whole answer, once all choices have ended. */
  Object body();

  /** What a stream begins with. */
  byte[] opening();

  /** What an event adds to a stream. */
  byte[] frames(ChoiceEvent event);

  /** What ends a stream that went well. */
  byte[] closing();

  /** What ends a stream that failed. */
  byte[] failure(ApiError error);
}
