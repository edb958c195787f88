package dev.lily.spring.openai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Ends a choice with its first tool call: what comes after is left out, and the end is that of an
 * answer with a call, however the engine came to it. Takes events on one thread.
 */
final class FirstCall {
  private volatile boolean over;

  /** Whether the call has come, so that the engine need not go on. */
  boolean isOver() {
    return over;
  }

  /** What is left of an event; {@code null} if nothing is. */
  @Nullable GenerationEvent keep(GenerationEvent event) {
    return switch (event) {
      case GenerationEvent.Output output -> over ? null : keep(output);
      case GenerationEvent.Completed end ->
          over
              ? new GenerationEvent.Completed(FinishReason.TOOL_CALLS, end.usage(), end.timings())
              : end;
      case GenerationEvent.PromptProgress progress -> progress;
      case GenerationEvent.Failed failed -> failed;
    };
  }

  private GenerationEvent keep(GenerationEvent.Output output) {
    List<ResponsePart> parts = output.parts();
    for (int i = 0; i < parts.size(); i++) {
      if (parts.get(i) instanceof ResponsePart.CalledTool) {
        over = true;
        return new GenerationEvent.Output(parts.subList(0, i + 1), output.logprobs());
      }
    }
    return output;
  }
}
