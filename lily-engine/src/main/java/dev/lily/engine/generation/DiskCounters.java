package dev.lily.engine.generation;

import java.util.concurrent.atomic.AtomicLong;

/** What the disk tier of the prefix cache did. Written by the engine, read by any thread. */
public final class DiskCounters {
  private final AtomicLong hits = new AtomicLong();
  private final AtomicLong writes = new AtomicLong();
  private final AtomicLong dropped = new AtomicLong();
  private final AtomicLong failures = new AtomicLong();
  private volatile int entries;
  private volatile long bytes;
  private volatile String problem = "";

  DiskCounters() {}

  void countHit() {
    hits.incrementAndGet();
  }

  void countWrite() {
    writes.incrementAndGet();
  }

  void countDropped() {
    dropped.incrementAndGet();
  }

  void countFailures(int count) {
    failures.addAndGet(count);
  }

  void show(int entries, long bytes) {
    this.entries = entries;
    this.bytes = bytes;
  }

  void problem(String sentence) {
    problem = sentence;
  }

  /** Prompts that began with something read from disk. */
  public long hits() {
    return hits.get();
  }

  /** Entries written. */
  public long writes() {
    return writes.get();
  }

  /** Snapshots that left memory before they could be written. */
  public long dropped() {
    return dropped.get();
  }

  /** Entries that could not be written, and files that were damaged or foreign. */
  public long failures() {
    return failures.get();
  }

  /** Entries on disk, those of other models included. */
  public int entries() {
    return entries;
  }

  /** Bytes of their files. */
  public long bytes() {
    return bytes;
  }

  /** Why the tier is off or does not write at the moment, or empty. */
  public String problem() {
    return problem;
  }
}
