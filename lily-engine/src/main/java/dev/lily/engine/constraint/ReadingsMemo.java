package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The readings met on one walk over a vocabulary, each once, with where its bytes lead. Many tokens
 * lead through few readings, so that most steps are a look-up. Reused from walk to walk; not
 * thread-safe.
 */
final class ReadingsMemo {
  /** Beyond this, readings are not kept, and walks take each step anew. */
  private static final int CAPACITY = 2048;

  private static final int TABLE_SIZE = 2 * CAPACITY;

  private final CallStack calls;
  private final List<Readings> pool = new ArrayList<>();
  private final @Nullable Readings[] table = new @Nullable Readings[TABLE_SIZE];
  private final int[] usedSlots = new int[CAPACITY];
  private int used;

  ReadingsMemo(CallStack calls) {
    this.calls = calls;
  }

  void clear() {
    for (int i = 0; i < used; i++) {
      table[usedSlots[i]] = null;
    }
    used = 0;
  }

  /** The kept readings that equal the given ones, or {@code null} if there is no room for them. */
  @Nullable Readings keep(Readings readings) {
    int slot = readings.hash(calls) >>> 20 & (TABLE_SIZE - 1);
    for (Readings kept = table[slot]; kept != null; kept = table[slot]) {
      if (kept.isSameAs(readings, calls)) {
        return kept;
      }
      slot = (slot + 1) & (TABLE_SIZE - 1);
    }
    if (used == CAPACITY) {
      return null;
    }
    Readings kept;
    if (used < pool.size()) {
      kept = pool.get(used);
      Arrays.fill(kept.next, null);
    } else {
      kept = new Readings();
      kept.next = new @Nullable Readings[256];
      pool.add(kept);
    }
    kept.copyFrom(readings);
    table[slot] = kept;
    usedSlots[used++] = slot;
    return kept;
  }
}
