package dev.lily.engine.model.qwen35moe;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.TensorUse;
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
    return of(config, vocabulary, limits, (_, rows, columns) -> backend.tensor(rows, columns));
  }

  /** Bytes that {@link #allocate} would take. */
  static long bytes(Qwen35Config config, int vocabulary, PassLimits limits, Backend backend) {
    AtomicLong bytes = new AtomicLong();
    of(
        config,
        vocabulary,
        limits,
        (use, rows, columns) -> {
          bytes.addAndGet(backend.tensorBytes(use, rows, columns));
          return new Unallocated(rows, columns);
        });
    return bytes.get();
  }

  private record Unallocated(int rows, int columns) implements Tensor {}

  @FunctionalInterface
  private interface Allocator {
    Tensor tensor(TensorUse use, int rows, int columns);
  }

  private static Workspace of(
      Qwen35Config config, int vocabulary, PassLimits limits, Allocator allocator) {
    int r = limits.maxRows();
    int l = limits.maxLogitRows();
    int hidden = config.hiddenSize();
    int heads = config.linearNumValueHeads();
    return new Workspace(
        allocator.tensor(TensorUse.RESIDUAL, r, hidden),
        allocator.tensor(TensorUse.HIDDEN, r, hidden),
        allocator.tensor(TensorUse.HIDDEN, r, hidden),
        allocator.tensor(TensorUse.HIDDEN, r, 2 * config.attentionDim()),
        allocator.tensor(TensorUse.HIDDEN, r, config.keyValueDim()),
        allocator.tensor(TensorUse.HIDDEN, r, config.keyValueDim()),
        allocator.tensor(TensorUse.HIDDEN, r, config.attentionDim()),
        allocator.tensor(TensorUse.GATE, r, config.attentionDim()),
        allocator.tensor(TensorUse.HIDDEN, r, config.attentionDim()),
        allocator.tensor(TensorUse.HIDDEN, r, config.convDim()),
        allocator.tensor(TensorUse.HIDDEN, r, config.valueDim()),
        allocator.tensor(TensorUse.HIDDEN, r, heads),
        allocator.tensor(TensorUse.HIDDEN, r, heads),
        allocator.tensor(TensorUse.HIDDEN, r, config.valueDim()),
        allocator.tensor(TensorUse.LOGITS, r, config.numExperts()),
        allocator.tensor(TensorUse.RESIDUAL, l, hidden),
        allocator.tensor(TensorUse.HIDDEN, l, hidden),
        allocator.tensor(TensorUse.LOGITS, l, vocabulary));
  }
}
