package dev.lily.engine;

/**
 * Bytes the engine takes, made before anything is allocated.
 *
 * @param weightBytes weights as the device counts them: once, be they mapped (the system may drop
 *     and reread them) or a copy in the layout of its kernels (the mapping is then not read again)
 * @param kvCacheBytes the page pool
 * @param kvBytesPerToken of one sequence
 * @param stateBytes recurrent and sampling slots
 * @param snapshotBytes recurrent slots of the prefix cache's snapshots
 * @param cacheBytes most bytes of the prefix cache: its snapshots, and the KV pages that they take
 *     from the pool while sessions do not need them; 0 if it is off
 * @param scratchBytes activations, kernel workspace, and buffers of what goes to disk
 * @param budgetBytes what the device or the user allows
 * @param contextLength tokens of one sequence
 * @param maxSessions sequences at the same time
 */
public record MemoryPlan(
    long weightBytes,
    long kvCacheBytes,
    long kvBytesPerToken,
    long stateBytes,
    long snapshotBytes,
    long cacheBytes,
    long scratchBytes,
    long budgetBytes,
    int contextLength,
    int maxSessions) {
  public long totalBytes() {
    return weightBytes + kvCacheBytes + stateBytes + snapshotBytes + scratchBytes;
  }
}
