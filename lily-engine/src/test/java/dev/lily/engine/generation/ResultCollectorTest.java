package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.node.JsonNodeFactory;

class ResultCollectorTest {
  private static final Usage USAGE = new Usage(7, 5, 2, 0);
  private static final Timings TIMINGS =
      new Timings(Duration.ZERO, Duration.ofMillis(1), Duration.ofMillis(2), Duration.ofMillis(3));

  @Test
  void putsTheEventsTogether() {
    ToolCall call = new ToolCall("c1", "weather", JsonNodeFactory.instance.objectNode());
    TokenLogprob logprob = new TokenLogprob(1, new byte[] {65}, -0.5f, List.of());
    ResultCollector collector = new ResultCollector();
    collector.onEvent(new GenerationEvent.PromptProgress(7, 7));
    collector.onEvent(
        output(new ResponsePart.ReasoningText("Hm"), new ResponsePart.ReasoningText("m.")));
    collector.onEvent(new GenerationEvent.Output(List.of(), List.of(logprob)));
    collector.onEvent(output(new ResponsePart.AnswerText("He"), new ResponsePart.AnswerText("y")));
    collector.onEvent(output(new ResponsePart.CalledTool(call)));
    collector.onEvent(output(new ResponsePart.IncompleteToolCall("<function=")));
    collector.onEvent(new GenerationEvent.Completed(FinishReason.LENGTH, USAGE, TIMINGS));
    assertThat(collector.result())
        .isEqualTo(
            new GenerationResult(
                "Hey",
                "Hmm.",
                List.of(call),
                "<function=",
                List.of(logprob),
                FinishReason.LENGTH,
                USAGE,
                TIMINGS));
  }

  private static GenerationEvent output(ResponsePart... parts) {
    return new GenerationEvent.Output(List.of(parts), List.of());
  }

  @Test
  void throwsTheFailure() {
    EngineClosedException failure = new EngineClosedException("closed");
    ResultCollector collector = new ResultCollector();
    collector.onEvent(output(new ResponsePart.AnswerText("He")));
    collector.onEvent(new GenerationEvent.Failed(failure));
    assertThatThrownBy(collector::result).isSameAs(failure);
  }

  @Test
  void hasNoResultBeforeTheEnd() {
    assertThatThrownBy(new ResultCollector()::result).isInstanceOf(IllegalStateException.class);
  }
}
