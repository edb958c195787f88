package dev.lily.engine.generation;

import dev.lily.engine.chat.ChatTemplate;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.engine.tokenizer.Tokenizer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Owns the one thread that uses the model, named {@value #THREAD_NAME}, and the way to it. Requests
 * are served in the order they came, as many at a time as there are places and as their states fit;
 * those running share every pass. Thread-safe. Internal to the engine: callers use {@code
 * LilyEngine}.
 */
public final class Scheduler {
  /** Name of the thread that all events are delivered on. */
  public static final String THREAD_NAME = "lily-engine";

  private static final Logger log = LoggerFactory.getLogger(Scheduler.class);

  /** How long after the grace a pass may take before its device counts as stuck. */
  private static final Duration STUCK = Duration.ofSeconds(30);

  private final Tokenizer tokenizer;
  private final int contextLength;
  private final LongSupplier clock;
  private final Counters counters = new Counters();
  private final AtomicLong ids = new AtomicLong();
  private final Inbox inbox;
  private final Batcher batcher;
  private final Thread thread;

  /** Without starting the thread: {@link #start} does, and tests take the turns themselves. */
  Scheduler(
      LanguageModel model,
      Tokenizer tokenizer,
      int[] stopTokens,
      SchedulerOptions options,
      LongSupplier clock) {
    this(model, tokenizer, stopTokens, options, clock, PromptLookup::new);
  }

  /**
   * @param drafts makes a session's drafts from its prompt, if there are to be any
   */
  Scheduler(
      LanguageModel model,
      Tokenizer tokenizer,
      int[] stopTokens,
      SchedulerOptions options,
      LongSupplier clock,
      Function<int[], DraftSource> drafts) {
    this.tokenizer = tokenizer;
    this.contextLength = options.contextLength();
    this.clock = clock;
    inbox = new Inbox(Batcher.places(model.limits(), options), options.queueLimit(), counters);
    int messageStart = tokenizer.addedToken(ChatTemplate.MESSAGE_START).orElse(-1);
    batcher =
        new Batcher(
            model,
            new StopTokens(stopTokens),
            messageStart,
            options,
            inbox,
            counters,
            clock,
            drafts);
    thread = Thread.ofPlatform().name(THREAD_NAME).daemon().unstarted(this::run);
  }

  /**
   * Starts the engine thread, which alone uses the model from now on.
   *
   * @param model not closed by the scheduler
   * @param stopTokens ids that end an answer
   */
  public static Scheduler start(
      LanguageModel model, Tokenizer tokenizer, int[] stopTokens, SchedulerOptions options) {
    return start(model, tokenizer, stopTokens, options, System::nanoTime);
  }

  static Scheduler start(
      LanguageModel model,
      Tokenizer tokenizer,
      int[] stopTokens,
      SchedulerOptions options,
      LongSupplier clock) {
    Scheduler scheduler = new Scheduler(model, tokenizer, stopTokens, options, clock);
    scheduler.inbox.engine(scheduler.thread);
    scheduler.thread.start();
    return scheduler;
  }

  /**
   * Refuses early what {@link #submit} would refuse now, before the prompt is encoded.
   *
   * @throws EngineClosedException after {@link #close}
   * @throws EngineBusyException if all places and the queue are taken
   */
  public void checkOpen() {
    inbox.checkOpen();
  }

  /**
   * Queues a request and returns at once.
   *
   * @param prompt shorter than the context window
   * @param listener called on the engine thread
   * @throws EngineClosedException after {@link #close}
   * @throws EngineBusyException if all places and the queue are taken
   */
  public GenerationHandle submit(
      GenerationRequest request,
      EncodedPrompt prompt,
      SamplingParameters sampling,
      GenerationListener listener) {
    return submit(request, prompt, sampling, null, listener);
  }

  /**
   * Queues a request and returns at once.
   *
   * @param prompt shorter than the context window
   * @param constraint what the answer has to follow
   * @param listener called on the engine thread
   * @throws EngineClosedException after {@link #close}
   * @throws EngineBusyException if all places and the queue are taken
   */
  public GenerationHandle submit(
      GenerationRequest request,
      EncodedPrompt prompt,
      SamplingParameters sampling,
      @Nullable AnswerConstraint constraint,
      GenerationListener listener) {
    Session session = session(request, prompt, sampling, constraint, listener);
    inbox.submit(session);
    return session.ticket();
  }

  private Session session(
      GenerationRequest request,
      EncodedPrompt prompt,
      SamplingParameters sampling,
      @Nullable AnswerConstraint constraint,
      GenerationListener listener) {
    int room = contextLength - prompt.tokens().length;
    if (prompt.tokens().length == 0 || room < 1) {
      throw new ContextOverflowException(prompt.tokens().length, contextLength);
    }
    int maxTokens = request.maxTokens() == null ? room : Math.min(request.maxTokens(), room);
    Ticket ticket = new Ticket("r" + ids.incrementAndGet(), inbox);
    log.debug(
        "Request {}: {} prompt tokens, at most {} to generate",
        ticket,
        prompt.tokens().length,
        maxTokens);
    return new Session(
        ticket,
        request,
        prompt,
        sampling,
        constraint == null ? null : new AnswerGuide(constraint),
        maxTokens,
        tokenizer,
        listener,
        clock.getAsLong());
  }

  /** What was done so far. */
  public Counters counters() {
    return counters;
  }

  /** Requests waiting now. */
  public int queued() {
    return Math.max(0, inbox.outstanding() - counters.running());
  }

  /** Whether requests are served. */
  public boolean isAlive() {
    return !inbox.isClosed() && thread.isAlive();
  }

  /** Whether the caller is on the engine thread, where waiting for an answer would never end. */
  public boolean isEngineThread() {
    return inbox.isEngineThread();
  }

  /**
   * Refuses new requests, fails waiting ones, lets running ones go on for at most {@code grace} and
   * fails those that are left; returns when the engine thread has ended. May be called again, also
   * meanwhile, to shorten the grace. An interrupt ends the grace; the flag is set again.
   *
   * @return whether the thread has ended; {@code false} if the device is stuck in a pass, in which
   *     case the model must not be freed
   * @throws IllegalStateException on the engine thread
   */
  public boolean close(Duration grace) {
    if (isEngineThread()) {
      throw new IllegalStateException("The engine cannot be closed from its own thread");
    }
    closeEntrance(grace);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return thread.join(STUCK.plusNanos(Nanos.of(grace)));
        } catch (InterruptedException e) {
          interrupted = true;
          closeEntrance(Duration.ZERO);
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Refuses new requests and sets when running ones are ended. */
  void closeEntrance(Duration grace) {
    inbox.close(clock.getAsLong() + Nanos.of(grace));
  }

  private void run() {
    try {
      while (!batcher.isFinished()) {
        long wait = turn();
        if (wait == Nanos.FOREVER) {
          LockSupport.park(this);
        } else if (wait > 0) {
          LockSupport.parkNanos(this, wait);
        }
        // A listener may have left the flag set; parking would then return at once, for ever.
        Thread.interrupted();
      }
    } catch (Throwable e) {
      log.error("The engine thread ends because it cannot even fail its requests", e);
      counters.lastFailure("The engine thread ended: " + e);
      inbox.close(clock.getAsLong());
      batcher.abandon();
    }
    endBatcher();
  }

  /** Ends what outlives requests; the engine thread does so by itself. */
  void endBatcher() {
    try {
      batcher.close();
    } catch (Throwable e) {
      log.error("The prefix cache could not be closed", e);
    }
  }

  /** As {@link Batcher#turn}; an error outside any request fails all of them. */
  long turn() {
    try {
      return batcher.turn();
    } catch (Throwable e) {
      log.error("The engine failed outside any request; all requests fail", e);
      batcher.failEverything(e);
      return 0;
    }
  }
}
