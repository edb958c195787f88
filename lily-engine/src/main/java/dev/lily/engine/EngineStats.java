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
 * @param promptTokens prompt tokens read
 * @param cachedTokens prompt tokens whose state was reused
 * @param generatedTokens tokens generated
 * @param steps passes submitted
 * @param kvPagesUsed pages in use now
 * @param kvPages pages in the pool
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
    String lastFailure,
    boolean alive) {}
