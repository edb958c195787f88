package dev.lily.spring.ai;

import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.spring.RequestOverflow;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.util.Assert;

/**
 * {@link Overflow} of the engine's requests. A request that no prompt can say stays: one with a raw
 * prompt, a forced tool call, at most one call at a time, or an output constraint other than a JSON
 * schema. Thread-safe.
 */
public final class OverflowingRequests implements RequestOverflow {
  private final Overflow overflow;

  public OverflowingRequests(Overflow overflow) {
    Assert.notNull(overflow, "overflow must not be null");
    this.overflow = overflow;
  }

  @Override
  public @Nullable Destination destination(GenerationRequest request, @Nullable Throwable refusal) {
    if (refusal == null && !overflow.hasPolicies()) {
      return null;
    }
    Prompt prompt = RequestMapper.prompt(request);
    if (prompt == null) {
      return null;
    }
    Overflow.Departure departure =
        refusal == null ? overflow.byPolicy(prompt) : overflow.after(refusal, prompt);
    return departure == null ? null : new Away(departure);
  }

  private record Away(Overflow.Departure departure) implements Destination {
    @Override
    public String model() {
      return departure.model();
    }

    @Override
    public GenerationHandle submit(GenerationListener listener) {
      return OtherAnswer.start(departure, listener);
    }
  }
}
