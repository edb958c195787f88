package dev.lily.spring.openai;

import dev.lily.engine.chat.ResponsePart;
import dev.lily.engine.chat.ToolCall;
import dev.lily.engine.generation.DeadlineExceededException;
import dev.lily.engine.generation.FinishReason;
import dev.lily.engine.generation.GenerationEvent;
import dev.lily.engine.generation.GenerationException;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.Timings;
import dev.lily.engine.generation.Usage;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * Plays events by the engine's contract: one thread serves all sessions in turns, asks a listener
 * whether it is ready before each event but the last, and ends a session within a step of its
 * cancellation. A session whose events have run out without an end waits.
 */
final class ScriptedEngine implements GenerationSubmitter, AutoCloseable {
  static final String THREAD = "scripted-engine";
  static final Usage USAGE = new Usage(7, 5, 2, 3);
  static final Timings TIMINGS =
      new Timings(Duration.ZERO, Duration.ofMillis(1), Duration.ofMillis(2), Duration.ofMillis(3));

  final List<GenerationRequest> requests = new CopyOnWriteArrayList<>();
  final List<Session> sessions = new CopyOnWriteArrayList<>();
  final List<String> submittingThreads = new CopyOnWriteArrayList<>();
  private final Function<GenerationRequest, Iterator<GenerationEvent>> script;
  private final Semaphore signals = new Semaphore(0);
  private final Semaphore steps = new Semaphore(0);
  private final boolean stepwise;
  private final Thread thread;
  private volatile boolean closed;
  private volatile boolean stalled;

  private ScriptedEngine(
      Function<GenerationRequest, Iterator<GenerationEvent>> script, boolean stepwise) {
    this.script = script;
    this.stepwise = stepwise;
    thread = Thread.ofPlatform().name(THREAD).daemon().start(this::run);
  }

  static ScriptedEngine of(Function<GenerationRequest, List<GenerationEvent>> script) {
    return new ScriptedEngine(request -> script.apply(request).iterator(), false);
  }

  static ScriptedEngine playing(GenerationEvent... events) {
    return of(_ -> List.of(events));
  }

  /** Plays the same event without end. */
  static ScriptedEngine endless(GenerationEvent event) {
    return new ScriptedEngine(_ -> Stream.generate(() -> event).iterator(), false);
  }

  /** Plays one event per {@link #step}. */
  static ScriptedEngine stepwise(GenerationEvent... events) {
    return new ScriptedEngine(_ -> List.of(events).iterator(), true);
  }

  static ScriptedEngine refusing(GenerationException failure) {
    return of(
        _ -> {
          throw failure;
        });
  }

  static GenerationEvent answer(String text) {
    return output(new ResponsePart.AnswerText(text));
  }

  static GenerationEvent thought(String text) {
    return output(new ResponsePart.ReasoningText(text));
  }

  static GenerationEvent failed(GenerationException cause) {
    return new GenerationEvent.Failed(cause);
  }

  static GenerationEvent call(String id, String name, String arguments) {
    return output(new ResponsePart.CalledTool(new ToolCall(id, name, Json.object(arguments))));
  }

  static GenerationEvent output(ResponsePart... parts) {
    return new GenerationEvent.Output(List.of(parts), List.of());
  }

  static GenerationEvent completed(FinishReason reason) {
    return new GenerationEvent.Completed(reason, USAGE, TIMINGS);
  }

  /** Lets the next event be played. */
  void step() {
    steps.release();
    signals.release();
  }

  /** From now on treats consumers that are not ready as stalled for too long. */
  void expireStalled() {
    stalled = true;
    signals.release();
  }

  @Override
  public GenerationHandle submit(GenerationRequest request, GenerationListener listener) {
    submittingThreads.add(Thread.currentThread().getName());
    Session session = new Session("s" + sessions.size(), script.apply(request), listener);
    requests.add(request);
    sessions.add(session);
    signals.release();
    return session;
  }

  private void run() {
    while (!closed) {
      boolean worked = false;
      for (Session session : sessions) {
        worked |= session.turn();
      }
      if (!worked) {
        signals.acquireUninterruptibly();
      }
    }
  }

  @Override
  public void close() {
    closed = true;
    signals.release();
  }

  final class Session implements GenerationHandle {
    final AtomicInteger played = new AtomicInteger();
    final CountDownLatch paused = new CountDownLatch(1);
    private final String id;
    private final Iterator<GenerationEvent> events;
    private final GenerationListener listener;
    private final CountDownLatch done = new CountDownLatch(1);
    volatile boolean cancelled;

    Session(String id, Iterator<GenerationEvent> events, GenerationListener listener) {
      this.id = id;
      this.events = events;
      this.listener = listener;
    }

    private boolean turn() {
      if (isDone()) {
        return false;
      }
      if (cancelled) {
        end(completed(FinishReason.CANCELLED));
        return true;
      }
      if (!listener.isReady()) {
        paused.countDown();
        if (stalled) {
          end(
              new GenerationEvent.Failed(
                  new DeadlineExceededException(
                      "Waiting for the consumer", Duration.ofSeconds(1))));
        }
        return stalled;
      }
      if (!events.hasNext() || (stepwise && !steps.tryAcquire())) {
        return false;
      }
      GenerationEvent event = events.next();
      played.incrementAndGet();
      if (event instanceof GenerationEvent.Completed || event instanceof GenerationEvent.Failed) {
        end(event);
      } else {
        listener.onEvent(event);
      }
      return true;
    }

    private void end(GenerationEvent event) {
      listener.onEvent(event);
      done.countDown();
    }

    @Override
    public String id() {
      return id;
    }

    @Override
    public void cancel() {
      cancelled = true;
      signals.release();
    }

    @Override
    public void wake() {
      signals.release();
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
}
