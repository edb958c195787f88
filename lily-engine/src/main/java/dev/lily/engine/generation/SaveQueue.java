package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.CacheDirectory;
import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.model.SequenceState.Snapshot;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The snapshots that have no file yet, in the order they were made, so that one comes after those
 * that it continues. One is written at a time. Engine thread only.
 */
final class SaveQueue {
  /** How long nothing is written after a write failed. */
  private static final long PAUSE_NANOS = Duration.ofSeconds(60).toNanos();

  /**
   * A snapshot that waits.
   *
   * @param pass passes submitted before it was made
   */
  private record Unsaved(int[] tokens, long pass) {}

  private final EntryFiles files;
  private final DiskIndex index;
  private final Passes passes;
  private final LongSupplier clock;
  private final LinkedHashMap<Snapshot, Unsaved> unsaved = new LinkedHashMap<>();
  private @Nullable SnapshotSave save;
  private boolean paused;
  private long pausedUntil;

  SaveQueue(EntryFiles files, DiskIndex index, Passes passes, LongSupplier clock) {
    this.files = files;
    this.index = index;
    this.passes = passes;
    this.clock = clock;
  }

  /** A snapshot was made. */
  void add(Snapshot snapshot, int[] tokens) {
    unsaved.put(
        snapshot, new Unsaved(Arrays.copyOf(tokens, snapshot.position()), passes.submitted()));
  }

  /** A snapshot is about to be closed: what of it is not copied yet will not be written. */
  void closing(Snapshot snapshot) {
    if (unsaved.remove(snapshot) != null) {
      files.counters().countDropped();
    }
    if (save != null && save.snapshot() == snapshot && !save.isCopied()) {
      files.counters().countDropped();
      abandon();
    }
  }

  /** Whether something is left that can be written now. */
  boolean hasWork() {
    return save != null || (!unsaved.isEmpty() && !paused);
  }

  /** Snapshots that are not written. */
  int size() {
    return unsaved.size() + (save == null ? 0 : 1);
  }

  /** Leaves nothing behind of the one that is being written. */
  void abandon() {
    if (save != null) {
      save.abandon();
      save = null;
    }
  }

  /** As {@link #abandon}, if it continues an entry that is gone. */
  void abandonIfNeeds(DiskEntry gone) {
    if (save != null && save.entry().needs(gone)) {
      abandon();
    }
  }

  /** Forgets all that wait, and the one that is being written. */
  void clear() {
    abandon();
    unsaved.clear();
  }

  /**
   * Copies what can be copied without waiting.
   *
   * @param most bytes
   * @return whether something has happened
   */
  boolean step(long most) {
    SnapshotSave current = save == null ? next() : save;
    save = current;
    if (current == null) {
      return false;
    }
    boolean moved = current.step(most);
    Exception failure = current.writer().failure();
    if (failure != null) {
      failed(current, failure);
      return true;
    }
    if (current.writer().isFinished()) {
      save = null;
      index.add(current.entry(), current.tokens());
      files.counters().countWrite();
      files.counters().problem("");
      return true;
    }
    return moved;
  }

  /** The next snapshot that can be read from the device and has room on the disk. */
  private @Nullable SnapshotSave next() {
    if (paused && clock.getAsLong() - pausedUntil < 0) {
      return null;
    }
    paused = false;
    while (!unsaved.isEmpty()) {
      Map.Entry<Snapshot, Unsaved> first = unsaved.firstEntry();
      if (!passes.areOver(first.getValue().pass)) {
        return null;
      }
      Snapshot snapshot = first.getKey();
      int[] tokens = first.getValue().tokens;
      unsaved.remove(snapshot);
      SnapshotSave next = begin(snapshot, tokens);
      if (next != null) {
        return next;
      }
    }
    return null;
  }

  private @Nullable SnapshotSave begin(Snapshot snapshot, int[] tokens) {
    DiskEntry before = index.deepest(tokens, tokens.length);
    if (before != null) {
      index.touch(before);
      if (before.position() == tokens.length) {
        return null;
      }
    }
    CacheDirectory.Draft draft = files.directory().draft(tokens, before);
    DiskEntry parent = draft.entry().parent();
    List<DiskEntry> gone = new ArrayList<>();
    boolean fits =
        index.makeRoom(draft.entry().bytes(), parent == null ? List.of() : List.of(parent), gone);
    files.delete(gone);
    if (!fits) {
      files.counters().countDropped();
      return null;
    }
    return new SnapshotSave(
        snapshot, tokens, draft.entry(), draft.writer(), files.shape(), files.worker());
  }

  private void failed(SnapshotSave current, Exception failure) {
    files.counters().countFailures(1);
    save = null;
    paused = true;
    pausedUntil = clock.getAsLong() + PAUSE_NANOS;
    files.problem(
        "Writing to the prefix cache's directory %s failed (%s); it is tried again every minute"
            .formatted(files.directory().path(), failure.getMessage()));
    if (!current.isCopied()) {
      unsaved.putFirst(current.snapshot(), new Unsaved(current.tokens(), passes.submitted()));
    }
  }

  /** Nanoseconds until the pause is over; {@link Nanos#FOREVER} if nothing waits for that. */
  long untilDue() {
    return paused && !unsaved.isEmpty()
        ? Math.max(1, pausedUntil - clock.getAsLong())
        : Nanos.FOREVER;
  }
}
