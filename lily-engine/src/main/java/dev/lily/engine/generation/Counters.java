package dev.lily.engine.generation;

import dev.lily.engine.model.StatePool;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** What the scheduler did since it was started. Written by the engine, read by any thread. */
public final class Counters {
  private static final long MIN_RETRY_NANOS = Duration.ofSeconds(1).toNanos();
  private static final long MAX_RETRY_NANOS = Duration.ofMinutes(10).toNanos();

  private final AtomicLong submitted = new AtomicLong();
  private final AtomicLong rejected = new AtomicLong();
  private final AtomicLong completed = new AtomicLong();
  private final AtomicLong cancelled = new AtomicLong();
  private final AtomicLong failed = new AtomicLong();
  private final AtomicLong promptTokens = new AtomicLong();
  private final AtomicLong generatedTokens = new AtomicLong();
  private final AtomicLong steps = new AtomicLong();
  private final AtomicLong cachedTokens = new AtomicLong();
  private final AtomicLong cacheHits = new AtomicLong();
  private final AtomicLong cacheMisses = new AtomicLong();
  private final AtomicLong cacheEvictions = new AtomicLong();
  private final DiskCounters disk = new DiskCounters();
  private final AtomicLong draftedTokens = new AtomicLong();
  private final AtomicLong acceptedTokens = new AtomicLong();
  private volatile int cacheSnapshots;
  private volatile long cacheBytes;
  private volatile int running;
  private volatile int usedPages;
  private volatile MemoryUse memory = MemoryUse.NONE;
  private volatile long meanServiceNanos;
  private volatile String lastFailure = "";

  Counters() {}

  void countSubmitted() {
    submitted.incrementAndGet();
  }

  void countRejected() {
    rejected.incrementAndGet();
  }

  void countCompleted(long serviceNanos) {
    completed.incrementAndGet();
    long mean = meanServiceNanos;
    meanServiceNanos = mean == 0 ? serviceNanos : mean + (serviceNanos - mean) / 4;
  }

  void countCancelled() {
    cancelled.incrementAndGet();
  }

  void countFailed() {
    failed.incrementAndGet();
  }

  void countPromptTokens(int count) {
    promptTokens.addAndGet(count);
  }

  /** A prompt of which so many tokens, perhaps none, need not be read. */
  void countCached(int count) {
    (count > 0 ? cacheHits : cacheMisses).incrementAndGet();
    cachedTokens.addAndGet(count);
    promptTokens.addAndGet(count);
  }

  void countEvicted() {
    cacheEvictions.incrementAndGet();
  }

  /** So many tokens were drafted, and so many of them were right. */
  void countDrafted(int drafted, int accepted) {
    draftedTokens.addAndGet(drafted);
    acceptedTokens.addAndGet(accepted);
  }

  void showCache(int snapshots, long bytes) {
    cacheSnapshots = snapshots;
    cacheBytes = bytes;
  }

  void countGeneratedToken() {
    generatedTokens.incrementAndGet();
  }

  void countStep() {
    steps.incrementAndGet();
  }

  void show(int running, StatePool states) {
    this.running = running;
    usedPages = states.sequencePages();
    if (!memory.isThatOf(states)) {
      memory = MemoryUse.of(states);
    }
  }

  void lastFailure(String message) {
    lastFailure = message;
  }

  /** How long until one of {@code ahead} requests on {@code places} places has probably ended. */
  Duration retryAfter(int ahead, int places) {
    long nanos = meanServiceNanos / places * Math.max(1, ahead);
    return Duration.ofNanos(Math.clamp(nanos, MIN_RETRY_NANOS, MAX_RETRY_NANOS));
  }

  /** Sessions being served now. */
  public int running() {
    return running;
  }

  /** Requests accepted. */
  public long submitted() {
    return submitted.get();
  }

  /** Requests refused because the queue was full. */
  public long rejected() {
    return rejected.get();
  }

  /** Answers that ended by themselves. */
  public long completed() {
    return completed.get();
  }

  /** Requests that their callers cancelled. */
  public long cancelled() {
    return cancelled.get();
  }

  /** Accepted requests that failed. */
  public long failed() {
    return failed.get();
  }

  /** Prompt tokens, cached ones included. */
  public long promptTokens() {
    return promptTokens.get();
  }

  /** Prompt tokens that were not read because their state was cached. */
  public long cachedTokens() {
    return cachedTokens.get();
  }

  /** Prompts that began with something cached. */
  public long cacheHits() {
    return cacheHits.get();
  }

  /** Prompts that did not, while the cache was on. */
  public long cacheMisses() {
    return cacheMisses.get();
  }

  /** Snapshots given up for others or for running sequences. */
  public long cacheEvictions() {
    return cacheEvictions.get();
  }

  /** Snapshots in the cache. */
  public int cacheSnapshots() {
    return cacheSnapshots;
  }

  /** Bytes of the snapshots in the cache and of the KV pages they refer to. */
  public long cacheBytes() {
    return cacheBytes;
  }

  /** What the disk tier of the cache did. */
  public DiskCounters disk() {
    return disk;
  }

  /** Tokens generated. */
  public long generatedTokens() {
    return generatedTokens.get();
  }

  /** Tokens put into passes before the model had said them. */
  public long draftedTokens() {
    return draftedTokens.get();
  }

  /** Those of them that it then said. */
  public long acceptedTokens() {
    return acceptedTokens.get();
  }

  /** Passes submitted. */
  public long steps() {
    return steps.get();
  }

  /** KV pages in use by sequences after the last step. */
  public int usedPages() {
    return usedPages;
  }

  /** Pages and slots after the last step. */
  public MemoryUse memory() {
    return memory;
  }

  /** Message of the last failure of the device or the engine, or empty. */
  public String lastFailure() {
    return lastFailure;
  }
}
