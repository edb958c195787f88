package dev.lily.engine.model;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.StateLayout;
import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/**
 * Hands out KV pages, recurrent slots and sampling slots of one {@link DeviceState}. Pages are
 * reference-counted, because snapshots share them. Engine thread only.
 *
 * <p>Pages are taken on demand, but a sequence commits at its opening to the most it may need, so
 * that a sequence once opened never runs out in mid-answer.
 */
public final class StatePool {
  private final DeviceState device;
  private final StateLayout layout;
  private final int[] pageReferences;
  private final ArrayDeque<Integer> freePages = new ArrayDeque<>();
  private final ArrayDeque<Integer> freeSlots = new ArrayDeque<>();
  private final ArrayDeque<Integer> freeSamplingSlots = new ArrayDeque<>();
  private int committedPages;

  public StatePool(DeviceState device) {
    this.device = device;
    layout = device.layout();
    pageReferences = new int[layout.numPages()];
    fill(freePages, layout.numPages());
    fill(freeSlots, layout.numSlots());
    fill(freeSamplingSlots, layout.numSamplingSlots());
  }

  private static void fill(ArrayDeque<Integer> ids, int count) {
    for (int id = 0; id < count; id++) {
      ids.add(id);
    }
  }

  /** The device the pool's ids refer to. */
  public DeviceState device() {
    return device;
  }

  /** Pages in use by sequences and snapshots. */
  public int usedPages() {
    return layout.numPages() - freePages.size();
  }

  /** Recurrent slots in use by sequences and snapshots. */
  public int usedSlots() {
    return layout.numSlots() - freeSlots.size();
  }

  /**
   * Opens an empty sequence.
   *
   * @param maxTokens the most tokens it will ever hold
   * @return {@code null} if slots or uncommitted pages are short at the moment
   */
  public @Nullable SequenceState open(int maxTokens) {
    int pages = pagesFor(maxTokens);
    if (freeSlots.isEmpty()
        || freeSamplingSlots.isEmpty()
        || committedPages + pages > layout.numPages()) {
      return null;
    }
    device.clearSlot(freeSlots.element());
    committedPages += pages;
    int slot = freeSlots.remove();
    return new SequenceState(this, slot, freeSamplingSlots.remove(), pages);
  }

  int pageTokens() {
    return layout.pageTokens();
  }

  int pagesFor(int tokens) {
    return Math.ceilDiv(tokens, layout.pageTokens());
  }

  int takePage() {
    Integer page = freePages.poll();
    if (page == null) {
      throw new IllegalStateException(
          "All %d KV pages are taken although only %d are committed"
              .formatted(layout.numPages(), committedPages));
    }
    pageReferences[page] = 1;
    return page;
  }

  void sharePage(int page) {
    pageReferences[page]++;
  }

  boolean isShared(int page) {
    return pageReferences[page] > 1;
  }

  void releasePage(int page) {
    if (--pageReferences[page] == 0) {
      freePages.add(page);
    }
  }

  /** A slot for a snapshot, or -1. */
  int takeSlot() {
    Integer slot = freeSlots.poll();
    return slot == null ? -1 : slot;
  }

  void releaseSlot(int slot) {
    freeSlots.add(slot);
  }

  boolean commit(int pages) {
    if (committedPages + pages > layout.numPages()) {
      return false;
    }
    committedPages += pages;
    return true;
  }

  void uncommit(int pages) {
    committedPages -= pages;
  }

  void close(SequenceState state) {
    releaseSlot(state.recurrentSlot());
    freeSamplingSlots.add(state.samplingSlot());
  }
}
