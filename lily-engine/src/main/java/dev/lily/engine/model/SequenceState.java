package dev.lily.engine.model;

import dev.lily.engine.backend.PageTable;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The state of one sequence: its KV pages, recurrent slot and sampling slot, standing at one
 * position. KV could be cut back, a recurrent state cannot: going back needs a {@link Snapshot}, or
 * a {@linkplain #mark mark}. Engine thread only.
 *
 * <p>What is asked of the device for a sequence is asked right before its rows, so that it is part
 * of their pass and lost only with them: the slot is cleared with the first tokens, not at the
 * opening.
 */
public final class SequenceState implements AutoCloseable {
  private static final int NONE = -1;

  private final StatePool pool;
  private final PageTable pages = new PageTable();
  private final int samplingSlot;
  private final int committedPages;
  private int recurrentSlot;
  private int spareSlot = NONE;
  private int markedPosition = NONE;
  private int position;
  private boolean slotIsSet;
  private boolean closed;

  SequenceState(StatePool pool, int recurrentSlot, int samplingSlot, int committedPages) {
    this.pool = pool;
    this.recurrentSlot = recurrentSlot;
    this.samplingSlot = samplingSlot;
    this.committedPages = committedPages;
  }

  /** Tokens the state has seen. */
  public int position() {
    return position;
  }

  public PageTable pages() {
    return pages;
  }

  public int recurrentSlot() {
    return recurrentSlot;
  }

  public int samplingSlot() {
    return samplingSlot;
  }

  /**
   * Makes the pages of the next {@code tokens} positions present and this sequence's own. To be
   * called before each pass with rows of this sequence, and with no other pass in between.
   */
  public void reserve(int tokens) {
    if (pool.pagesFor(position + tokens) > committedPages) {
      throw new IllegalStateException(
          "A sequence of %d tokens cannot take %d more; it was opened for %d pages of %d tokens"
              .formatted(position, tokens, committedPages, pool.pageTokens()));
    }
    clearIfNew();
    if (position % pool.pageTokens() != 0) {
      ownLastPage();
    }
    while (pages.size() < pool.pagesFor(position + tokens)) {
      pages.add(pool.takePage());
    }
  }

  private void clearIfNew() {
    if (!slotIsSet) {
      pool.device().clearSlot(recurrentSlot);
      slotIsSet = true;
    }
  }

  private void ownLastPage() {
    int last = position / pool.pageTokens();
    int page = pages.page(last);
    while (pool.isShared(page)) {
      if (!pool.hasFreePage() && pool.giveUpSnapshot()) {
        continue; // it may have been the one that shared the page
      }
      int own = pool.takePage();
      pages.set(last, own);
      pool.removeSequence(page);
      pool.device().copyPage(page, own);
      return;
    }
  }

  /** Counts tokens whose pass was submitted. */
  public void advance(int tokens) {
    position += tokens;
  }

  /**
   * Keeps the present state in a second slot, so that {@link #rollBack} can return to it from the
   * tokens added next. To be called before {@link #reserve}, in place of an earlier mark.
   *
   * @throws IllegalStateException if the pool has no {@linkplain StatePool#setAsideSpares spare}
   */
  public void mark() {
    if (spareSlot == NONE) {
      spareSlot = pool.takeSpareSlot();
    }
    clearIfNew();
    pool.device().copySlot(recurrentSlot, spareSlot);
    markedPosition = position;
  }

  /** Returns to the mark, once. What came behind it is overwritten by what comes instead. */
  public void rollBack() {
    if (markedPosition == NONE) {
      throw new IllegalStateException("A sequence at %d has no mark".formatted(position));
    }
    int marked = spareSlot;
    spareSlot = recurrentSlot;
    recurrentSlot = marked;
    position = markedPosition;
    markedPosition = NONE;
  }

  /**
   * Keeps the present state for later; pages are shared, the recurrent slot is copied.
   *
   * @return {@code null} if there are as many snapshots as there may be
   */
  public @Nullable Snapshot snapshot() {
    int slot = pool.takeSnapshotSlot();
    if (slot < 0) {
      return null;
    }
    Snapshot snapshot;
    try {
      clearIfNew();
      pool.device().copySlot(recurrentSlot, slot);
      int[] shared = new int[pool.pagesFor(position)];
      Arrays.setAll(shared, pages::page);
      snapshot = new Snapshot(pool, position, shared, slot);
    } catch (Throwable e) {
      pool.releaseSnapshotSlot(slot);
      throw e;
    }
    for (int page : snapshot.pages()) {
      pool.addSnapshot(page);
    }
    return snapshot;
  }

  /** Pages that a {@link #snapshot} made now would share and that no other snapshot shares yet. */
  public int pagesWithoutSnapshot() {
    return pool.pagesWithoutSnapshot(pages, pool.pagesFor(position));
  }

  /** Goes to a snapshot's state, forgetting the present one. The snapshot stays usable. */
  public void restore(Snapshot snapshot) {
    int[] kept = snapshot.pages();
    for (int page : kept) {
      pool.addSequence(page);
    }
    releasePages();
    for (int page : kept) {
      pages.add(page);
    }
    pool.device().copySlot(snapshot.slot(), recurrentSlot);
    slotIsSet = true;
    position = snapshot.position();
  }

  private void releasePages() {
    for (int i = 0; i < pages.size(); i++) {
      pool.removeSequence(pages.page(i));
    }
    pages.truncate(0);
  }

  /** Gives everything back. Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      releasePages();
      if (spareSlot != NONE) {
        pool.releaseSpareSlot(spareSlot);
      }
      pool.close(this, committedPages);
    }
  }

  /** A state to come back to. Close it to give its pages and slot back. */
  public static final class Snapshot implements AutoCloseable {
    private final StatePool pool;
    private final int position;
    private final int[] pages;
    private final int slot;
    private boolean closed;

    Snapshot(StatePool pool, int position, int[] pages, int slot) {
      this.pool = pool;
      this.position = position;
      this.pages = pages;
      this.slot = slot;
    }

    /** Tokens the state has seen. */
    public int position() {
      return position;
    }

    /** Copies a page's bytes out; {@code index} counts from the first token on. */
    public void readPage(int index, MemorySegment target) {
      pool.device().readPage(pages[index], target);
    }

    /** Fills in a page of a blank snapshot. */
    public void writePage(int index, MemorySegment source) {
      pool.device().writePage(pages[index], source);
    }

    /** Copies bytes of the recurrent slot out. */
    public void readSlot(long offset, MemorySegment target) {
      pool.device().readSlot(slot, offset, target);
    }

    /** Fills in bytes of the recurrent slot of a blank snapshot. */
    public void writeSlot(long offset, MemorySegment source) {
      pool.device().writeSlot(slot, offset, source);
    }

    int page(int index) {
      return pages[index];
    }

    private int[] pages() {
      return pages;
    }

    private int slot() {
      return slot;
    }

    @Override
    public void close() {
      if (!closed) {
        closed = true;
        for (int page : pages) {
          pool.removeSnapshot(page);
        }
        pool.releaseSnapshotSlot(slot);
      }
    }
  }
}
