package dev.lily.engine.generation;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.generation.disk.CacheDirectory;
import dev.lily.engine.generation.disk.ChainReader;
import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.generation.disk.DiskWorker;
import dev.lily.engine.generation.disk.EntryShape;
import dev.lily.engine.model.SequenceState.Snapshot;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The prefix cache's snapshots on disk. Each is written soon after it was made, so that it may
 * leave memory at any time and little is lost with the process; one that leaves before its turn
 * came is not written. One is moved at a time, reading first. Nothing here waits for the disk but
 * {@link #close}. Engine thread only.
 */
final class DiskTier {
  private static final Logger log = LoggerFactory.getLogger(DiskTier.class);

  /** Most bytes copied in a turn while requests are served. */
  private static final long BUSY_BYTES = 8 << 20;

  /** How long nothing is written after a write failed. */
  private static final long PAUSE_NANOS = Duration.ofSeconds(60).toNanos();

  /** How long reading may get nowhere. */
  private static final long STUCK_NANOS = Duration.ofSeconds(10).toNanos();

  /** How long closing may take for what is not written yet. */
  private static final Duration CLOSE = Duration.ofSeconds(10);

  private static final Duration END = Duration.ofSeconds(2);

  private record Unsaved(int[] tokens, long pass) {}

  private final CacheDirectory directory;
  private final EntryShape shape;
  private final DiskIndex index;
  private final DiskWorker worker;
  private final Passes passes;
  private final DiskCounters counters;
  private final LongSupplier clock;
  private final LinkedHashMap<Snapshot, Unsaved> unsaved = new LinkedHashMap<>();
  private @Nullable SnapshotSave save;
  private @Nullable SnapshotLoad load;
  private boolean paused;
  private long pausedUntil;
  private long lastProgress;
  private boolean stuck;

  /**
   * @param contents of the directory
   */
  DiskTier(
      CacheDirectory directory,
      CacheDirectory.Contents contents,
      EntryShape shape,
      long maxBytes,
      DiskWorker worker,
      Passes passes,
      DiskCounters counters,
      LongSupplier clock) {
    this.directory = directory;
    this.shape = shape;
    this.worker = worker;
    this.passes = passes;
    this.counters = counters;
    this.clock = clock;
    index = new DiskIndex(maxBytes);
    for (CacheDirectory.Found found : contents.entries()) {
      if (found.entry().position() == 0) {
        index.addOther(found.entry());
      } else if (!index.add(found.entry(), found.tokens())) {
        delete(List.of(found.entry()));
      }
    }
    counters.countFailures(contents.deleted().size());
    List<DiskEntry> gone = new ArrayList<>();
    index.makeRoom(0, List.of(), gone);
    delete(gone);
    show();
  }

  /**
   * Opens the directory and looks at what is in it. One that cannot be used costs the tier, not the
   * engine: why is in the log and the counters.
   *
   * @param signal makes the engine thread look
   */
  static @Nullable DiskTier open(
      DiskCacheOptions options,
      DeviceState device,
      Passes passes,
      DiskCounters counters,
      LongSupplier clock,
      Runnable signal) {
    CacheDirectory directory = null;
    try {
      EntryShape shape =
          new EntryShape(device.layout().pageTokens(), device.pageBytes(), device.slotBytes());
      directory =
          CacheDirectory.open(
              options.directory(), key(options.model(), device), shape, options.files());
      CacheDirectory.Contents contents = directory.scan();
      if (!contents.deleted().isEmpty()) {
        log.warn(
            "The prefix cache deleted {} files of {} that it cannot use, such as {}",
            contents.deleted().size(),
            directory.path(),
            contents.deleted().getFirst());
      }
      DiskWorker worker = new DiskWorker(options.thread().get(), shape, signal);
      DiskTier tier =
          new DiskTier(
              directory, contents, shape, options.maxBytes(), worker, passes, counters, clock);
      log.info(
          "Prefix cache on disk: {} entries, {} of at most {} MiB, in {}",
          counters.entries(),
          counters.bytes() >> 20,
          options.maxBytes() >> 20,
          directory.path());
      return tier;
    } catch (IOException | RuntimeException e) {
      close(directory);
      counters.problem(
          "The disk tier of the prefix cache is off: %s cannot be used (%s)"
              .formatted(options.directory(), reason(e)));
      log.warn("{}", counters.problem());
      return null;
    }
  }

  private static String reason(Exception e) {
    return e.getClass() == IOException.class ? String.valueOf(e.getMessage()) : e.toString();
  }

  private static void close(@Nullable CacheDirectory directory) {
    try {
      if (directory != null) {
        directory.close();
      }
    } catch (IOException e) {
      log.warn("The prefix cache's directory could not be unlocked: {}", e.getMessage());
    }
  }

  private static String key(String model, DeviceState device) {
    try {
      byte[] words = (model + "\n" + device.format()).getBytes(StandardCharsets.UTF_8);
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(words));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Every Java runtime has SHA-256", e);
    }
  }

  // What there is.

  /**
   * The deepest entry that leaves a token of a prompt to be read, if reading it is worth it.
   *
   * @param known how many of the prompt's tokens are in memory
   */
  @Nullable DiskEntry deepest(int[] prompt, int known) {
    DiskEntry entry = stuck ? null : index.deepest(prompt, prompt.length - 1);
    return entry != null && entry.position() - known >= shape.pageTokens() ? entry : null;
  }

  boolean isLoading() {
    return load != null;
  }

  boolean isLoading(DiskEntry entry) {
    return load != null && load.entry().equals(entry);
  }

  /** Counts what a snapshot in memory stands for as used. */
  void touch(int[] tokens, int position) {
    DiskEntry entry = index.at(tokens, position);
    if (entry != null) {
      index.touch(entry);
    }
  }

  private void show() {
    counters.show(index.size(), index.bytes());
  }

  // What comes from memory and leaves it.

  /** A snapshot was made. */
  void made(Snapshot snapshot, int[] tokens) {
    if (stuck) {
      return;
    }
    unsaved.put(
        snapshot, new Unsaved(Arrays.copyOf(tokens, snapshot.position()), passes.submitted()));
  }

  /** A snapshot is about to be closed. */
  void closing(Snapshot snapshot) {
    if (unsaved.remove(snapshot) != null) {
      counters.countDropped();
    }
    if (save != null && save.snapshot() == snapshot && !save.isCopied()) {
      counters.countDropped();
      endSave();
    }
  }

  private void endSave() {
    if (save != null) {
      save.abandon();
      save = null;
    }
  }

  // Reading.

  /**
   * Begins to read an entry.
   *
   * @param target blank but for its first {@code sharedPages} pages; closed if reading fails
   */
  void beginLoad(DiskEntry entry, int[] prompt, Snapshot target, int sharedPages) {
    int[] tokens = Arrays.copyOf(prompt, entry.position());
    load =
        new SnapshotLoad(
            entry,
            tokens,
            target,
            sharedPages,
            passes.submitted(),
            directory.reader(entry, tokens),
            shape,
            worker);
    lastProgress = clock.getAsLong();
    index.touch(entry);
    touchFiles(entry.chain());
  }

  /** Takes over the snapshot that was read, once it is whole. */
  @Nullable SnapshotLoad takeLoaded() {
    SnapshotLoad done = load;
    if (done == null || !done.isDone()) {
      return null;
    }
    load = null;
    done.end();
    return done;
  }

  /** Gives up the snapshot that is being read; whether there was one. */
  boolean abandonLoad() {
    if (load == null) {
      return false;
    }
    load.abandon();
    load = null;
    return true;
  }

  // Moving bytes.

  /**
   * Moves bytes, as many as can be moved without waiting.
   *
   * @param idle whether no request is served
   * @return whether there was something to move
   */
  boolean step(boolean idle) {
    long most = idle ? Long.MAX_VALUE : BUSY_BYTES;
    try {
      return load != null ? stepLoad(load, most) : stepSave(most);
    } catch (Throwable e) {
      log.warn("The disk tier of the prefix cache gives up what it was moving", e);
      counters.countFailures(1);
      abandonLoad();
      endSave();
      return true;
    }
  }

  private boolean stepLoad(SnapshotLoad current, long most) {
    boolean moved = current.step(passes, most);
    ChainReader.Failure failure = current.reader().failure();
    if (failure != null) {
      abandonLoad();
      forget(failure);
      return true;
    }
    long now = clock.getAsLong();
    if (moved) {
      lastProgress = now;
    } else if (current.waitsForDisk() && now - lastProgress >= STUCK_NANOS) {
      abandonLoad();
      stuck = true;
      unsaved.clear();
      problem("The disk does not answer, so the disk tier of the prefix cache is off");
    }
    return moved;
  }

  private void forget(ChainReader.Failure failure) {
    counters.countFailures(1);
    log.warn(
        "The prefix cache's file {} cannot be used and is deleted: {}",
        failure.culprit().file(),
        String.valueOf(failure.cause().getMessage()));
    if (save != null && save.entry().needs(failure.culprit())) {
      endSave();
    }
    delete(index.remove(failure.culprit()));
    show();
  }

  private boolean stepSave(long most) {
    SnapshotSave current = save == null ? nextSave() : save;
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
      counters.countWrite();
      counters.problem("");
      show();
      return true;
    }
    return moved;
  }

  /** The next snapshot that can be read from the device and has room on the disk. */
  private @Nullable SnapshotSave nextSave() {
    if (stuck || (paused && clock.getAsLong() - pausedUntil < 0)) {
      return null;
    }
    paused = false;
    while (!unsaved.isEmpty()) {
      Map.Entry<Snapshot, Unsaved> first = unsaved.firstEntry();
      if (!passes.areOver(first.getValue().pass)) {
        return null;
      }
      unsaved.pollFirstEntry();
      SnapshotSave next = begin(first.getKey(), first.getValue().tokens);
      if (next != null) {
        return next;
      }
    }
    return null;
  }

  private @Nullable SnapshotSave begin(Snapshot snapshot, int[] tokens) {
    DiskEntry parent = index.deepest(tokens, tokens.length);
    if (parent != null) {
      index.touch(parent);
      if (parent.position() == tokens.length) {
        return null;
      }
    }
    CacheDirectory.Draft draft = directory.draft(tokens, parent);
    List<DiskEntry> gone = new ArrayList<>();
    List<DiskEntry> kept =
        draft.entry().parent() == null ? List.of() : List.of(draft.entry().parent());
    boolean fits = index.makeRoom(draft.entry().bytes(), kept, gone);
    delete(gone);
    show();
    if (!fits) {
      counters.countDropped();
      return null;
    }
    return new SnapshotSave(snapshot, tokens, draft.entry(), draft.writer(), shape, worker);
  }

  private void failed(SnapshotSave current, Exception failure) {
    counters.countFailures(1);
    save = null;
    paused = true;
    pausedUntil = clock.getAsLong() + PAUSE_NANOS;
    problem(
        "Writing to the prefix cache's directory %s failed (%s); it is tried again every minute"
            .formatted(directory.path(), failure.getMessage()));
    if (!current.isCopied()) {
      unsaved.putFirst(current.snapshot(), new Unsaved(current.tokens(), passes.submitted()));
    }
  }

  private void problem(String sentence) {
    if (counters.problem().isEmpty()) {
      log.warn("{}", sentence);
    }
    counters.problem(sentence);
  }

  private void delete(List<DiskEntry> entries) {
    for (DiskEntry entry : entries) {
      worker.submit(
          () -> {
            try {
              directory.delete(entry);
            } catch (IOException e) {
              counters.countFailures(1);
              log.warn("The prefix cache's file {} could not be deleted: {}", entry.file(), e);
            }
          });
    }
  }

  /** Notes on the disk that entries were used, the first one longest ago. */
  private void touchFiles(List<DiskEntry> entries) {
    Instant now = Instant.now();
    worker.submit(
        () -> {
          int before = entries.size();
          for (DiskEntry entry : entries) {
            try {
              directory.touch(entry, FileTime.from(now.minusNanos(1000L * --before)));
            } catch (IOException e) {
              log.debug("The prefix cache's file {} has no new time: {}", entry.file(), e);
            }
          }
        });
  }

  /** Nanoseconds until something falls due; {@link Nanos#FOREVER} if nothing does. */
  long untilDue() {
    if (load != null) {
      return Math.max(1, lastProgress + STUCK_NANOS - clock.getAsLong());
    }
    return paused && !unsaved.isEmpty()
        ? Math.max(1, pausedUntil - clock.getAsLong())
        : Nanos.FOREVER;
  }

  // The end.

  /** Writes what is not written yet, for a limited time, and lets others use the directory. */
  void close() {
    abandonLoad();
    long end = System.nanoTime() + CLOSE.toNanos();
    while ((save != null || !unsaved.isEmpty()) && !paused && !stuck) {
      if (System.nanoTime() - end >= 0) {
        log.warn("{} snapshots of the prefix cache were not written in time", unsaved.size() + 1);
        break;
      }
      if (!step(true)) {
        LockSupport.parkNanos(this, Duration.ofMillis(1).toNanos());
      }
    }
    endSave();
    touchFiles(index.entries());
    if (!worker.close(END.toNanos())) {
      log.warn("The disk does not answer; the prefix cache's directory stays locked");
      return;
    }
    close(directory);
  }
}
