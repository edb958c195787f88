package dev.lily.engine;

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
}
