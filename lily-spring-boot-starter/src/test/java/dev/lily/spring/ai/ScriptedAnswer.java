package dev.lily.spring.ai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Tells a listener a fixed answer on a thread of its own, by the listener's contract: asks {@code
 * isReady} before each piece, waits for {@code wake} while it is not, and ends on {@code cancel}.
 */
final class ScriptedAnswer implements GenerationHandle {

  static final String THREAD = "scripted-engine";
  static final Usage USAGE = new Usage(5, 9, 0, 0);
  static final Timings TIMINGS =
      new Timings(Duration.ZERO, Duration.ofMillis(1), Duration.ofMillis(2), Duration.ofMillis(3));

  final AtomicInteger emitted = new AtomicInteger();
  final AtomicInteger cancels = new AtomicInteger();
  private final List<ResponsePart> parts;
  private final Semaphore wakes = new Semaphore(0);
  private final CountDownLatch done = new CountDownLatch(1);
  private volatile boolean cancelled;

  private ScriptedAnswer(List<ResponsePart> parts) {
    this.parts = parts;
  }

  static ScriptedAnswer start(GenerationListener listener, List<ResponsePart> parts) {
    ScriptedAnswer answer = new ScriptedAnswer(parts);
    Thread.ofPlatform().name(THREAD).daemon().start(() -> answer.run(listener));
    return answer;
  }

  private void run(GenerationListener listener) {
    listener.onEvent(new GenerationEvent.PromptProgress(5, 5));
    for (ResponsePart part : parts) {
      while (!cancelled && !listener.isReady()) {
        wakes.acquireUninterruptibly();
      }
      if (cancelled) {
        break;
      }
      emitted.incrementAndGet();
      listener.onEvent(new GenerationEvent.Output(List.of(part), List.of()));
    }
    listener.onEvent(
        new GenerationEvent.Completed(
            cancelled ? FinishReason.CANCELLED : FinishReason.STOP, USAGE, TIMINGS));
    done.countDown();
  }

  @Override
  public String id() {
    return "scripted";
  }

  @Override
  public void cancel() {
    cancels.incrementAndGet();
    cancelled = true;
    wakes.release();
  }

  @Override
  public void wake() {
    wakes.release();
  }

  @Override
  public boolean isDone() {
    return done.getCount() == 0;
  }

  @Override
  public void await() throws InterruptedException {
    done.await();
  }
}
