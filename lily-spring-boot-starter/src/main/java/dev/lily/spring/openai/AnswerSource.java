package dev.lily.spring.openai;

import dev.lily.engine.generation.GenerationRequest;
import dev.lily.spring.AnswerRecorder;
import dev.lily.spring.RequestOverflow;
import dev.lily.spring.RequestOverflow.Destination;
import java.util.List;
import reactor.core.publisher.Mono;

/**
 * Where answers come from: the engine or, for what may leave, the model to which it overflows.
 *
 * @param model name of the loaded model
 * @param recorder takes usage and timings of the engine's answers
 */
record AnswerSource(
    String model, GenerationSubmitter engine, AnswerRecorder recorder, RequestOverflow overflow) {

  /**
   * Submits all choices to the one or the other, as {@link RunningCompletion#start} does. Several
   * choices stay, since other models have none.
   */
  Mono<RunningCompletion> start(List<GenerationRequest> choices, boolean localOnly) {
    Mono<RunningCompletion> here = RunningCompletion.start(model, engine, choices, recorder);
    if (localOnly || choices.size() > 1) {
      return here;
    }
    return Mono.defer(
        () -> {
          Destination destination = overflow.destination(choices.getFirst(), null);
          return destination != null
              ? there(destination, choices)
              : here.onErrorResume(refusal -> afterRefusal(refusal, choices));
        });
  }

  private Mono<RunningCompletion> afterRefusal(Throwable refusal, List<GenerationRequest> choices) {
    Destination destination = overflow.destination(choices.getFirst(), refusal);
    return destination == null ? Mono.error(refusal) : there(destination, choices);
  }

  private static Mono<RunningCompletion> there(
      Destination destination, List<GenerationRequest> choices) {
    return RunningCompletion.start(
        destination.model(),
        (request, listener) -> destination.submit(listener),
        choices,
        AnswerRecorder.NONE);
  }
}
