package dev.lily.spring.actuate;

import dev.lily.engine.MemoryPlan;

/**
 * The memory plan as health and endpoint show it, all in bytes but the last two.
 *
 * @param totalBytes what the parts add up to
 * @param cacheBytes the most that the prefix cache holds, part of which lies in the KV cache; no
 *     part of the total
 */
public record MemoryDetails(
    long totalBytes,
    long budgetBytes,
    long weightBytes,
    long kvCacheBytes,
    long kvBytesPerToken,
    long stateBytes,
    long snapshotBytes,
    long cacheBytes,
    long scratchBytes,
    int contextLength,
    int maxSessions) {

  static MemoryDetails of(MemoryPlan plan) {
    return new MemoryDetails(
        plan.totalBytes(),
        plan.budgetBytes(),
        plan.weightBytes(),
        plan.kvCacheBytes(),
        plan.kvBytesPerToken(),
        plan.stateBytes(),
        plan.snapshotBytes(),
        plan.cacheBytes(),
        plan.scratchBytes(),
        plan.contextLength(),
        plan.maxSessions());
  }
}
