package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationRequest;
import java.util.List;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * What a client asks, in the engine's words, and how it wants to be answered.
 *
 * @param choices one request per choice, at least one
 * @param stream whether the answer is sent piece by piece
 * @param format writes the answer of the model with this name
 * @param failures turns what the engine refuses into the words of the operation
 */
record AskedAnswer(
    List<GenerationRequest> choices,
    boolean stream,
    Function<String, AnswerFormat> format,
    UnaryOperator<Throwable> failures) {
  AskedAnswer {
    choices = List.copyOf(choices);
  }
}
