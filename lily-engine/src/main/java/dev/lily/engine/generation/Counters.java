package dev.lily.engine.generation;

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
  private volatile int running;
  private volatile int usedPages;
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

  void countGeneratedToken() {
    generatedTokens.incrementAndGet();
  }

  void countStep() {
    steps.incrementAndGet();
  }

  void show(int running, int usedPages) {
    this.running = running;
    this.usedPages = usedPages;
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

  /** Prompt tokens read. */
  public long promptTokens() {
    return promptTokens.get();
  }

  /** Tokens generated. */
  public long generatedTokens() {
    return generatedTokens.get();
  }

  /** Passes submitted. */
  public long steps() {
    return steps.get();
  }

  /** KV pages in use after the last step. */
  public int usedPages() {
    return usedPages;
  }

  /** Message of the last failure of the device or the engine, or empty. */
  public String lastFailure() {
    return lastFailure;
  }
}
