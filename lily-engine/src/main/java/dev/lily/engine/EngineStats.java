package dev.lily.engine;

import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.generation.MemoryUse;

/**
 * A snapshot of counters since the engine was opened, for meters and health.
 *
 * @param queued requests waiting now
 * @param running sessions being served now
 * @param submitted requests accepted
 * @param rejected requests refused because the queue was full
 * @param completed answers that ended by themselves
 * @param cancelled requests cancelled
 * @param failed requests that failed after admission
 * @param promptTokens prompt tokens, cached ones included
 * @param cachedTokens prompt tokens that were not read because their state was cached
 * @param generatedTokens tokens generated
 * @param steps passes submitted
 * @param kvPagesUsed pages that sessions use now
 * @param kvPages pages in the pool
 * @param cache the prefix cache in memory
 * @param disk the prefix cache on disk
 * @param speculation tokens that were drafted
 * @param memory what is in use of the memory plan
 * @param lastFailure message of the last failure, or empty
 * @param alive whether the engine thread serves requests
 */
public record EngineStats(
    int queued,
    int running,
    long submitted,
    long rejected,
    long completed,
    long cancelled,
    long failed,
    long promptTokens,
    long cachedTokens,
    long generatedTokens,
    long steps,
    int kvPagesUsed,
    int kvPages,
    Cache cache,
    Disk disk,
    Speculation speculation,
    Memory memory,
    String lastFailure,
    boolean alive) {

  /**
   * The prefix cache.
   *
   * @param hits prompts that began with something cached
   * @param misses prompts that did not
   * @param evictions snapshots given up for others or for running sessions
   * @param snapshots snapshots held now
   * @param bytes what they and their KV pages take now
   * @param maxBytes the most they may take; 0 if the cache is off
   */
  public record Cache(
      long hits, long misses, long evictions, int snapshots, long bytes, long maxBytes) {}

  /**
   * The prefix cache on disk; all zero where there is none.
   *
   * @param entries files, those of other models included
   * @param bytes what they take
   * @param hits prompts that began with something read from disk
   * @param writes entries written
   * @param dropped snapshots that left memory before they could be written
   * @param failures entries that could not be written, and files that were damaged or foreign
   * @param problem why it is off or does not write at the moment, or empty
   */
  public record Disk(
      int entries,
      long bytes,
      long hits,
      long writes,
      long dropped,
      long failures,
      String problem) {}

  /**
   * Speculation.
   *
   * @param drafted tokens put into passes before the model had said them
   * @param accepted those of them that it then said
   */
  public record Speculation(long drafted, long accepted) {}

  /**
   * What is in use, by the parts of the {@link MemoryPlan}, in bytes.
   *
   * @param weightBytes the mapped weights
   * @param kvCacheBytes KV pages that sessions or the cache hold
   * @param stateBytes slots that sessions hold
   * @param snapshotBytes recurrent slots that the cache holds
   * @param scratchBytes activations and kernel workspace
   * @param allocatedBytes what the device has allocated so far for all pages and slots: what was
   *     given back stays allocated for the next, and some devices allocate all at the start
   */
  public record Memory(
      long weightBytes,
      long kvCacheBytes,
      long stateBytes,
      long snapshotBytes,
      long scratchBytes,
      long allocatedBytes) {
    static Memory of(MemoryPlan plan, StateLayout layout, int snapshots, MemoryUse use) {
      return new Memory(
          plan.weightBytes(),
          use.pages() * plan.kvBytesPerToken() * layout.pageTokens(),
          use.sequenceSlots() * plan.stateBytes() / (layout.numSlots() - snapshots),
          snapshots == 0 ? 0 : use.snapshotSlots() * plan.snapshotBytes() / snapshots,
          plan.scratchBytes(),
          use.allocatedBytes());
    }

    /** The sum of the parts in use. */
    public long usedBytes() {
      return weightBytes + kvCacheBytes + stateBytes + snapshotBytes + scratchBytes;
    }
  }
}
