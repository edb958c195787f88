package dev.lily.engine.backend;

import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.MemorySegment;
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

  /**
   * What the bytes of pages and slots mean: only a state of the same format may be given them.
   * Names the back end, and the sizes and types of everything a page and a slot hold.
   */
  String format();

  /** Bytes of one page over all attention layers. */
  long pageBytes();

  /** Bytes of one slot over all delta layers. */
  long slotBytes();

  /**
   * Copies the bytes of a page out at once. No pass in flight may write the page.
   *
   * @param target of {@link #pageBytes} bytes
   */
  void readPage(int page, MemorySegment target);

  /**
   * Replaces the bytes of a page at once. No pass in flight may use the page.
   *
   * @param source {@link #pageBytes} bytes that {@link #readPage} gave
   */
  void writePage(int page, MemorySegment source);

  /**
   * Copies bytes of a slot out at once. No pass in flight may write the slot.
   *
   * @param offset of the first byte in the slot
   * @param target of at most as many bytes as the slot has from there on
   */
  void readSlot(int slot, long offset, MemorySegment target);

  /**
   * Replaces bytes of a slot at once. No pass in flight may use the slot.
   *
   * @param offset of the first byte in the slot
   * @param source bytes that {@link #readSlot} gave
   */
  void writeSlot(int slot, long offset, MemorySegment source);

  /**
   * Takes back tokens that a sampling slot chose: its counts, its step and what {@link
   * RowPlan#PREVIOUS_TOKEN} stands for are again as when it had chosen those that stay. Parameters
   * and mask stay as they are.
   *
   * @param chosen the last {@code count} tokens it chose, in order
   * @param kept how many of them stay, at least 1
   */
  void rewindSampling(int slot, int[] chosen, int count, int kept);

  /** Frees everything. No pass may be in flight. */
  @Override
  void close();
}
