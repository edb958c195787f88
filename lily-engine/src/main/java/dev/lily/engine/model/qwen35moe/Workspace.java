package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.Tensor;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Every activation of a pass, allocated once. Layers run one after another, so all of them share
 * one set.
 *
 * @param x residual stream {@code [R, hidden]}
 * @param n normalised input of a mixer or of the experts {@code [R, hidden]}
 * @param branch what a mixer or the experts add to the residual stream {@code [R, hidden]}
 * @param rows residual rows that need logits {@code [L, hidden]}
 * @param normalizedRows the same after the final norm {@code [L, hidden]}
 * @param logits {@code [L, vocabulary]}
 */
record Workspace(
    Tensor x,
    Tensor n,
    Tensor branch,
    Tensor queryAndGate,
    Tensor key,
    Tensor value,
    Tensor query,
    Tensor gate,
    Tensor attended,
    Tensor queryKeyValue,
    Tensor z,
    Tensor a,
    Tensor b,
    Tensor delta,
    Tensor routerLogits,
    Tensor rows,
    Tensor normalizedRows,
    Tensor logits) {

  /**
   * Allocates for passes up to the limits.
   *
   * @param vocabulary real tokens, which are what logits are computed for
   */
  static Workspace allocate(
      Qwen35Config config, int vocabulary, PassLimits limits, Backend backend) {
    return of(config, vocabulary, limits, backend::tensor);
  }

  /** Bytes that {@link #allocate} would take. */
  static long bytes(Qwen35Config config, int vocabulary, PassLimits limits, Backend backend) {
    AtomicLong bytes = new AtomicLong();
    of(
        config,
        vocabulary,
        limits,
        (rows, columns) -> {
          bytes.addAndGet(backend.tensorBytes(rows, columns));
          return new Unallocated(rows, columns);
        });
    return bytes.get();
  }

  private record Unallocated(int rows, int columns) implements Tensor {}

  @FunctionalInterface
  private interface Allocator {
    Tensor tensor(int rows, int columns);
  }

  private static Workspace of(
      Qwen35Config config, int vocabulary, PassLimits limits, Allocator allocator) {
    int r = limits.maxRows();
    int l = limits.maxLogitRows();
    int hidden = config.hiddenSize();
    int heads = config.linearNumValueHeads();
    return new Workspace(
        allocator.tensor(r, hidden),
        allocator.tensor(r, hidden),
        allocator.tensor(r, hidden),
        allocator.tensor(r, 2 * config.attentionDim()),
        allocator.tensor(r, config.keyValueDim()),
        allocator.tensor(r, config.keyValueDim()),
        allocator.tensor(r, config.attentionDim()),
        allocator.tensor(r, config.attentionDim()),
        allocator.tensor(r, config.attentionDim()),
        allocator.tensor(r, config.convDim()),
        allocator.tensor(r, config.valueDim()),
        allocator.tensor(r, heads),
        allocator.tensor(r, heads),
        allocator.tensor(r, config.valueDim()),
        allocator.tensor(r, config.numExperts()),
        allocator.tensor(l, hidden),
        allocator.tensor(l, hidden),
        allocator.tensor(l, vocabulary));
  }
}
