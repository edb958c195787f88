package dev.lily.engine;

import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.checkpoint.CheckpointIdentity;
import dev.lily.engine.generation.AnswerConstraints;
import dev.lily.engine.generation.Counters;
import dev.lily.engine.generation.DiskCacheOptions;
import dev.lily.engine.generation.DiskCounters;
import dev.lily.engine.generation.EncodedPrompt;
import dev.lily.engine.generation.GenerationHandle;
import dev.lily.engine.generation.GenerationInterruptedException;
import dev.lily.engine.generation.GenerationListener;
import dev.lily.engine.generation.GenerationRequest;
import dev.lily.engine.generation.GenerationResult;
import dev.lily.engine.generation.PrefixCacheOptions;
import dev.lily.engine.generation.PromptEncoder;
import dev.lily.engine.generation.ResultCollector;
import dev.lily.engine.generation.SamplingDefaults;
import dev.lily.engine.generation.Scheduler;
import dev.lily.engine.generation.SchedulerOptions;
import dev.lily.engine.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A loaded model that answers requests. One engine thread computes; every method here may be called
 * from any thread, though {@link #generate} and {@link #close} not from a listener.
 */
public final class LilyEngine implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(LilyEngine.class);

  private final LoadedModel loaded;
  private final PromptEncoder encoder;
  private final SamplingDefaults sampling;
  private final AnswerConstraints constraints;
  private final Scheduler scheduler;
  private final int maxSnapshots;
  private final ReentrantLock closing = new ReentrantLock();
  private boolean closed;

  /** Takes the model over and starts the engine thread. */
  LilyEngine(LoadedModel loaded, EngineOptions options) {
    this.loaded = loaded;
    StateLayout layout = loaded.model().layout();
    int contextLength = contextLength(loaded, layout);
    int sessions = layout.numSamplingSlots();
    maxSnapshots = layout.numSlots() - sessions - options.speculation().spareSlots(sessions);
    encoder = new PromptEncoder(loaded.template(), loaded.tokenizer(), contextLength);
    sampling =
        new SamplingDefaults(
            options.defaults(),
            loaded.generationDefaults(),
            layout.vocabularySize(),
            () -> ThreadLocalRandom.current().nextLong());
    constraints =
        new AnswerConstraints(loaded.tokenizer(), layout.vocabularySize(), loaded.stopTokens());
    scheduler =
        Scheduler.start(
            loaded.model(),
            loaded.tokenizer(),
            loaded.stopTokens(),
            new SchedulerOptions(
                options.maxSessions(),
                options.queueLimit(),
                options.prefillChunk(),
                contextLength,
                options.stallTimeout(),
                cache(loaded.plan(), layout, maxSnapshots, options),
                options.queueTimeout(),
                options.speculation(),
                options.maxStepTime()));
  }

  private static PrefixCacheOptions cache(
      MemoryPlan plan, StateLayout layout, int snapshots, EngineOptions options) {
    return snapshots == 0
        ? new PrefixCacheOptions(0, 0, 0, 0, false, disk(options))
        : new PrefixCacheOptions(
            plan.cacheBytes(),
            plan.snapshotBytes() / snapshots,
            plan.kvBytesPerToken() * layout.pageTokens(),
            options.snapshotInterval(),
            options.pinSystemPrompt(),
            disk(options));
  }

  private static @Nullable DiskCacheOptions disk(EngineOptions options) {
    Path directory = options.cacheDirectory();
    return directory == null
        ? null
        : new DiskCacheOptions(
            directory, options.cacheDiskBytes(), CheckpointIdentity.of(options.model()));
  }

  /** What the model allows, but no more than one sequence can hold. */
  private static int contextLength(LoadedModel loaded, StateLayout layout) {
    long pool = (long) layout.numPages() * layout.pageTokens();
    int sequence = (int) Math.min(pool, loaded.model().limits().maxPositions());
    return Math.min(loaded.info().contextLength(), sequence);
  }

  /**
   * Opens a model.
   *
   * @throws dev.lily.engine.checkpoint.CheckpointException if the directory is unusable
   * @throws dev.lily.engine.backend.BackendException if no back end can run it
   * @throws ModelDoesNotFitException if the memory plan exceeds the budget
   */
  public static LilyEngine open(EngineOptions options) {
    LoadedModel loaded = ModelLoader.load(options);
    try {
      return new LilyEngine(loaded, options);
    } catch (Throwable e) {
      try {
        loaded.close();
      } catch (RuntimeException suppressed) {
        e.addSuppressed(suppressed);
      }
      throw e;
    }
  }

  /**
   * Submits a request and returns at once; the prompt is rendered, tokenised and checked on the
   * calling thread, so bad input fails here.
   *
   * @throws dev.lily.engine.generation.InvalidRequestException if the request is wrong
   * @throws dev.lily.engine.generation.ContextOverflowException if the prompt is too long
   * @throws dev.lily.engine.generation.EngineBusyException if the queue is full
   * @throws dev.lily.engine.generation.EngineClosedException after {@link #close}
   */
  public GenerationHandle submit(GenerationRequest request, GenerationListener listener) {
    scheduler.checkOpen();
    EncodedPrompt prompt = encoder.encode(request);
    return scheduler.submit(
        request,
        prompt,
        sampling.complete(request, prompt.thinking()),
        constraints.of(request, prompt.thinking()),
        listener);
  }

  /**
   * Submits and waits. Interrupting the thread cancels the request, sets the thread's interrupt
   * flag again and throws {@link GenerationInterruptedException}.
   *
   * @throws dev.lily.engine.generation.GenerationException as {@link #submit}, or if it fails later
   * @throws IllegalStateException if called by a listener, which would wait for itself
   */
  public GenerationResult generate(GenerationRequest request) {
    if (scheduler.isEngineThread()) {
      throw new IllegalStateException(
          "generate was called on the engine thread, which would wait for itself; use submit");
    }
    ResultCollector collector = new ResultCollector();
    GenerationHandle handle = submit(request, collector);
    try {
      handle.await();
    } catch (InterruptedException e) {
      handle.cancel();
      Thread.currentThread().interrupt();
      throw new GenerationInterruptedException(handle.id(), e);
    }
    return collector.result();
  }

  public ModelInfo model() {
    return loaded.info();
  }

  /** The model's tokenizer, also usable after {@link #close}. */
  public Tokenizer tokenizer() {
    return loaded.tokenizer();
  }

  public MemoryPlan memoryPlan() {
    return loaded.plan();
  }

  public EngineStats stats() {
    Counters counters = scheduler.counters();
    return new EngineStats(
        scheduler.queued(),
        counters.running(),
        counters.submitted(),
        counters.rejected(),
        counters.completed(),
        counters.cancelled(),
        counters.failed(),
        counters.promptTokens(),
        counters.cachedTokens(),
        counters.generatedTokens(),
        counters.steps(),
        counters.usedPages(),
        loaded.model().layout().numPages(),
        new EngineStats.Cache(
            counters.cacheHits(),
            counters.cacheMisses(),
            counters.cacheEvictions(),
            counters.cacheSnapshots(),
            counters.cacheBytes(),
            loaded.plan().cacheBytes()),
        disk(counters.disk()),
        new EngineStats.Speculation(counters.draftedTokens(), counters.acceptedTokens()),
        EngineStats.Memory.of(
            loaded.plan(), loaded.model().layout(), maxSnapshots, counters.memory()),
        counters.lastFailure(),
        scheduler.isAlive());
  }

  private static EngineStats.Disk disk(DiskCounters disk) {
    return new EngineStats.Disk(
        disk.entries(),
        disk.bytes(),
        disk.hits(),
        disk.writes(),
        disk.dropped(),
        disk.failures(),
        disk.problem());
  }

  /**
   * Refuses new requests, fails waiting ones with {@link
   * dev.lily.engine.generation.EngineClosedException}, lets running ones finish for at most {@code
   * grace}, fails what is left in the same way, writes what the prefix cache has not written to
   * disk for at most ten seconds, then frees the model. Returns when all of it is done. Idempotent;
   * a second call may shorten the grace of the first. An interrupt ends the grace.
   *
   * @throws IllegalStateException if called by a listener
   */
  public void close(Duration grace) {
    boolean ended = scheduler.close(grace);
    closing.lock();
    try {
      if (closed) {
        return;
      }
      closed = true;
      if (ended) {
        loaded.close();
      } else {
        log.error(
            "The device is stuck in a pass, so the model of {} is not freed", loaded.info().name());
      }
    } finally {
      closing.unlock();
    }
  }

  /** Ends everything and frees the model. Idempotent. */
  @Override
  public void close() {
    close(Duration.ZERO);
  }
}
