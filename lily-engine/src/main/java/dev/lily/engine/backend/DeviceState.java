package dev.lily.engine.backend;

import dev.lily.engine.sampling.SamplingParameters;
import org.jspecify.annotations.Nullable;

/**
 * All sequence state on a device: the KV page pool, the recurrent slots and the sampling slots.
 * Calls take effect after every pass submitted before them and before any pass begun after them.
 * Copies and clears may be made by the pass submitted next, and are lost if it fails. Engine thread
 * only.
 */
public interface DeviceState extends AutoCloseable {
  StateLayout layout();

  /** Bytes held when all pages and slots are in use. */
  long bytes();

  /**
   * Bytes that were allocated so far: less than {@link #bytes} where pages and slots take memory
   * when they are first used.
   */
  default long allocatedBytes() {
    return bytes();
  }

  /** Copies recurrent states and convolution windows of all layers. */
  void copySlot(int from, int to);

  /** Zeroes recurrent states and convolution windows of all layers. */
  void clearSlot(int slot);

  /** Copies keys and values of all attention layers. */
  void copyPage(int from, int to);

  /**
   * Starts a sampling slot afresh: step counter 0, no generated tokens, no mask.
   *
   * @param promptTokens tokens that the repetition penalty counts as seen; not kept
   */
  void beginSampling(int slot, SamplingParameters parameters, int[] promptTokens);

  /**
   * Restricts the next samples of a slot.
   *
   * @param allowed bit {@code t & 63} of word {@code t >> 6} allows token {@code t}; {@code null}
   *     allows all. Copied.
   */
  void maskTokens(int slot, long @Nullable [] allowed);

  /** Frees everything. No pass may be in flight. */
  @Override
  void close();
}
