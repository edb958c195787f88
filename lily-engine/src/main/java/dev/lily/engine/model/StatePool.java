package dev.lily.engine.model;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.StateLayout;
import java.util.ArrayDeque;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Hands out KV pages, recurrent slots and sampling slots of one {@link DeviceState}. Pages are
 * reference-counted, because sequences and snapshots share them. Engine thread only.
 *
 * <p>Pages are taken on demand, but a sequence commits at its opening to the most it may need, so
 * that a sequence once opened never runs out in mid-answer. Snapshots commit to nothing: whoever
 * keeps them gives them up when {@linkplain #onShortage asked}.
 *
 * <p>What was given back last is handed out first, so that a device that takes memory on first use
 * takes no more than was ever in use at a time.
 */
public final class StatePool {
  private final DeviceState device;
  private final StateLayout layout;
  private final int[] sequenceReferences;
  private final int[] snapshotReferences;
  private final ArrayDeque<Integer> freePages = new ArrayDeque<>();
  private final ArrayDeque<Integer> freeSlots = new ArrayDeque<>();
  private final ArrayDeque<Integer> freeSamplingSlots = new ArrayDeque<>();
  private BooleanSupplier giveUpSnapshot = () -> false;
  private int committedPages;
  private int sequencePages;
  private int snapshotPages;
  private int snapshots;
  private int reservedSpares;
  private int spares;
  private int mostPages;
  private int mostSlots;

  public StatePool(DeviceState device) {
    this.device = device;
    layout = device.layout();
    sequenceReferences = new int[layout.numPages()];
    snapshotReferences = new int[layout.numPages()];
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

  /**
   * Says who gives up snapshots when a sequence needs a page and none is free.
   *
   * @param giveUpSnapshot closes one snapshot; {@code false} if there is none
   */
  public void onShortage(BooleanSupplier giveUpSnapshot) {
    this.giveUpSnapshot = giveUpSnapshot;
  }

  /**
   * Keeps slots from snapshots, so that as many sequences as can be open may each {@linkplain
   * SequenceState#mark mark} a position.
   *
   * @param count slots, at most those beyond one for each sequence
   */
  public void setAsideSpares(int count) {
    if (count < 0 || count > layout.numSlots() - layout.numSamplingSlots()) {
      throw new IllegalArgumentException(
          "%d spare slots are asked for; of %d slots %d are the sequences' own"
              .formatted(count, layout.numSlots(), layout.numSamplingSlots()));
    }
    reservedSpares = count;
  }

  /** Pages in use by sequences and snapshots. */
  public int usedPages() {
    return layout.numPages() - freePages.size();
  }

  /** Pages in use by sequences, whether or not snapshots share them. */
  public int sequencePages() {
    return sequencePages;
  }

  /** Pages in use by snapshots, whether or not sequences share them. */
  public int snapshotPages() {
    return snapshotPages;
  }

  /** Recurrent slots in use by sequences and snapshots. */
  public int usedSlots() {
    return layout.numSlots() - freeSlots.size();
  }

  /** Most pages that were in use at a time, which are all that ever were. */
  public int mostPages() {
    return mostPages;
  }

  /** Most recurrent slots that were in use at a time, which are all that ever were. */
  public int mostSlots() {
    return mostSlots;
  }

  /** Snapshots that are open. */
  public int snapshots() {
    return snapshots;
  }

  /** Most snapshots at a time: the slots beyond those that sequences may need. */
  public int maxSnapshots() {
    return layout.numSlots() - layout.numSamplingSlots() - reservedSpares;
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
    committedPages += pages;
    return new SequenceState(this, takeSlot(), freeSamplingSlots.remove(), pages);
  }

  /** Tokens per page. */
  public int pageTokens() {
    return layout.pageTokens();
  }

  /** Pages that hold so many tokens. */
  public int pagesFor(int tokens) {
    return Math.ceilDiv(tokens, layout.pageTokens());
  }

  boolean hasFreePage() {
    return !freePages.isEmpty();
  }

  /** Asks for a snapshot to be closed; whether one was. */
  boolean giveUpSnapshot() {
    return giveUpSnapshot.getAsBoolean();
  }

  /** A page for a sequence, if need be one that snapshots held. */
  int takePage() {
    while (freePages.isEmpty()) {
      if (!giveUpSnapshot()) {
        throw new IllegalStateException(
            "All %d KV pages are taken, %d of them by snapshots, although only %d are committed"
                .formatted(layout.numPages(), snapshotPages, committedPages));
      }
    }
    int page = takeFreePage();
    addSequence(page);
    return page;
  }

  private int takeFreePage() {
    int page = freePages.remove();
    mostPages = Math.max(mostPages, usedPages());
    return page;
  }

  void addSequence(int page) {
    if (sequenceReferences[page]++ == 0) {
      sequencePages++;
    }
  }

  void removeSequence(int page) {
    if (--sequenceReferences[page] == 0) {
      sequencePages--;
      freeIfUnused(page);
    }
  }

  void addSnapshot(int page) {
    if (snapshotReferences[page]++ == 0) {
      snapshotPages++;
    }
  }

  void removeSnapshot(int page) {
    if (--snapshotReferences[page] == 0) {
      snapshotPages--;
      freeIfUnused(page);
    }
  }

  private void freeIfUnused(int page) {
    if (sequenceReferences[page] == 0 && snapshotReferences[page] == 0) {
      freePages.push(page);
    }
  }

  /** Of a sequence's first pages, how many no snapshot has. */
  int pagesWithoutSnapshot(PageTable pages, int count) {
    int fresh = 0;
    for (int i = 0; i < count; i++) {
      fresh += snapshotReferences[pages.page(i)] == 0 ? 1 : 0;
    }
    return fresh;
  }

  boolean isShared(int page) {
    return sequenceReferences[page] + snapshotReferences[page] > 1;
  }

  /** A slot for a snapshot, or -1 if there are as many as there may be. */
  int takeSnapshotSlot() {
    if (snapshots == maxSnapshots()) {
      return -1;
    }
    snapshots++;
    return takeSlot();
  }

  private int takeSlot() {
    int slot = freeSlots.remove();
    mostSlots = Math.max(mostSlots, usedSlots());
    return slot;
  }

  /**
   * Takes pages and a slot for a snapshot whose bytes come from elsewhere. They are to be written
   * once every pass that was submitted before has ended.
   *
   * @param position tokens the state will have seen
   * @param base a snapshot whose first tokens are the same, as far as pages are shared with it
   * @param sharedPages how many of its pages the new one shares; whole ones only
   * @return {@code null} if pages or slots are short at the moment
   */
  public SequenceState.@Nullable Snapshot blankSnapshot(
      int position, SequenceState.@Nullable Snapshot base, int sharedPages) {
    int[] pages = new int[pagesFor(position)];
    if (freePages.size() < pages.length - sharedPages) {
      return null;
    }
    int slot = takeSnapshotSlot();
    if (slot < 0) {
      return null;
    }
    for (int i = 0; i < pages.length; i++) {
      pages[i] = base != null && i < sharedPages ? base.page(i) : takeFreePage();
      addSnapshot(pages[i]);
    }
    return new SequenceState.Snapshot(this, position, pages, slot);
  }

  void releaseSnapshotSlot(int slot) {
    snapshots--;
    freeSlots.push(slot);
  }

  int takeSpareSlot() {
    if (spares == reservedSpares) {
      throw new IllegalStateException("All %d spare slots are taken".formatted(spares));
    }
    spares++;
    return takeSlot();
  }

  void releaseSpareSlot(int slot) {
    spares--;
    freeSlots.push(slot);
  }

  void close(SequenceState state, int committed) {
    committedPages -= committed;
    freeSlots.push(state.recurrentSlot());
    freeSamplingSlots.push(state.samplingSlot());
  }

  /** Pages that open sequences may come to need. */
  public int committedPages() {
    return committedPages;
  }
}
