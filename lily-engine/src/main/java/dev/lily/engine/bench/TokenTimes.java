package dev.lily.engine.bench;

import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.Timings;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** When the tokens of a stream came. Written by the engine thread, read by any. */
final class TokenTimes implements GenerationListener {
  private long[] times = new long[256];
  private int size;
  private @Nullable GenerationEvent end;

  @Override
  public synchronized void onEvent(GenerationEvent event) {
    long now = System.nanoTime();
    switch (event) {
      case GenerationEvent.Output(_, var logprobs) -> {
        for (int i = 0; i < logprobs.size(); i++) {
          add(now);
        }
      }
      case GenerationEvent.Completed _, GenerationEvent.Failed _ -> end = event;
      case GenerationEvent.PromptProgress _ -> {}
    }
    notifyAll();
  }

  private void add(long now) {
    if (size == times.length) {
      times = Arrays.copyOf(times, 2 * size);
    }
    times[size++] = now;
  }

  /** Waits until so many have come, or none will. */
  synchronized void awaitTokens(int count) throws InterruptedException {
    while (size < count && end == null) {
      wait();
    }
  }

  /** Nanoseconds of {@link System#nanoTime}; ascending. */
  synchronized long[] times() {
    return Arrays.copyOf(times, size);
  }

  /**
   * How long it took.
   *
   * @throws IllegalStateException if the request did not end so
   */
  synchronized Timings requireEnd(FinishReason reason) {
    if (end instanceof GenerationEvent.Completed(FinishReason actual, _, Timings timings)
        && actual == reason) {
      return timings;
    }
    throw new IllegalStateException("A stream ended with " + end);
  }
}
