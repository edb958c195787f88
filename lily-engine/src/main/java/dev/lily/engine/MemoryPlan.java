package dev.lily.engine;

/**
 * Bytes the engine takes, made before anything is allocated.
 *
 * @param weightBytes mapped weights as the device counts them (file-backed; the system may drop and
 *     reread them)
 * @param kvCacheBytes the page pool
 * @param kvBytesPerToken of one sequence
 * @param stateBytes recurrent and sampling slots
 * @param scratchBytes activations and kernel workspace
 * @param budgetBytes what the device or the user allows
 * @param contextLength tokens of one sequence
 * @param maxSessions sequences at the same time
 */
public record MemoryPlan(
    long weightBytes,
    long kvCacheBytes,
    long kvBytesPerToken,
    long stateBytes,
    long scratchBytes,
    long budgetBytes,
    int contextLength,
    int maxSessions) {
  public long totalBytes() {
    return weightBytes + kvCacheBytes + stateBytes + scratchBytes;
  }
}
