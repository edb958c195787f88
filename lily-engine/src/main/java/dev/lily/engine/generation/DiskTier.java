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
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
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

  /** How long reading may get nowhere. */
  private static final long STUCK_NANOS = Duration.ofSeconds(10).toNanos();

  /** How long closing may take for what is not written yet. */
  private static final Duration CLOSE = Duration.ofSeconds(10);

  private static final Duration END = Duration.ofSeconds(2);

  private final EntryFiles files;
  private final DiskIndex index;
  private final SaveQueue saves;
  private final Passes passes;
  private final LongSupplier clock;
  private @Nullable SnapshotLoad load;
  private long lastProgress;
  private boolean hasBegun;
  private boolean stuck;

  private DiskTier(
      EntryFiles files,
      CacheDirectory.Contents contents,
      long maxBytes,
      Passes passes,
      LongSupplier clock) {
    this.files = files;
    this.passes = passes;
    this.clock = clock;
    index = new DiskIndex(maxBytes);
    saves = new SaveQueue(files, index, passes, clock);
    for (CacheDirectory.Found found : contents.entries()) {
      if (found.entry().position() == 0) {
        index.addOther(found.entry());
      } else if (!index.add(found.entry(), found.tokens())) {
        files.delete(List.of(found.entry()));
      }
    }
    List<DiskEntry> gone = new ArrayList<>();
    index.makeRoom(0, List.of(), gone);
    files.delete(gone);
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
              options.directory(), key(options.model(), device, shape), shape, options.files());
      CacheDirectory.Contents contents = directory.scan();
      if (!contents.deleted().isEmpty()) {
        log.warn(
            "The prefix cache deleted {} files of {} that it cannot use, such as {}",
            contents.deleted().size(),
            directory.path(),
            contents.deleted().getFirst());
      }
      counters.countFailures(contents.deleted().size());
      DiskWorker worker = new DiskWorker(options.thread().get(), shape, signal);
      EntryFiles files = new EntryFiles(directory, shape, worker, counters);
      DiskTier tier = new DiskTier(files, contents, options.maxBytes(), passes, clock);
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

  private static String key(String model, DeviceState device, EntryShape shape) {
    try {
      byte[] words =
          String.join("\n", model, device.format(), shape.toString())
              .getBytes(StandardCharsets.UTF_8);
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
    return entry != null && entry.position() - known >= files.shape().pageTokens() ? entry : null;
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
    files.counters().show(index.size(), index.bytes());
  }

  // What comes from memory and leaves it.

  /** A snapshot was made. */
  void made(Snapshot snapshot, int[] tokens) {
    DiskEntry known = index.at(tokens, snapshot.position());
    if (known != null) {
      index.touch(known);
    }
    if (!stuck && known == null) {
      saves.add(snapshot, tokens);
    }
  }

  /** A snapshot is about to be closed. */
  void closing(Snapshot snapshot) {
    saves.closing(snapshot);
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
            files.directory().reader(entry, tokens),
            files.shape(),
            files.worker());
    lastProgress = clock.getAsLong();
    hasBegun = true;
    index.touch(entry);
    files.touch(entry.chain());
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
    hasBegun = false;
    try {
      boolean moved = load != null ? stepLoad(load, most) : saves.step(most);
      show();
      return moved;
    } catch (Throwable e) {
      log.warn("The disk tier of the prefix cache gives up what it was moving", e);
      files.counters().countFailures(1);
      abandonLoad();
      saves.abandon();
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
      saves.clear();
      files.problem("The disk does not answer, so the disk tier of the prefix cache is off");
    }
    return moved;
  }

  private void forget(ChainReader.Failure failure) {
    files.counters().countFailures(1);
    log.warn(
        "The prefix cache's file {} cannot be used and is deleted: {}",
        failure.culprit().file(),
        String.valueOf(failure.cause().getMessage()));
    saves.abandonIfNeeds(failure.culprit());
    files.delete(index.remove(failure.culprit()));
  }

  /**
   * Nanoseconds until something falls due; 0 if {@link #step} is to be called at once, {@link
   * Nanos#FOREVER} if nothing does.
   */
  long untilDue() {
    if (hasBegun) {
      return 0;
    }
    if (load != null) {
      return Math.max(1, lastProgress + STUCK_NANOS - clock.getAsLong());
    }
    return saves.untilDue();
  }

  // The end.

  /** Writes what is not written yet, for a limited time, and lets others use the directory. */
  void close() {
    abandonLoad();
    long end = System.nanoTime() + CLOSE.toNanos();
    while (saves.hasWork()) {
      if (System.nanoTime() - end >= 0) {
        log.warn("{} snapshots of the prefix cache were not written in time", saves.size());
        break;
      }
      if (!step(true)) {
        LockSupport.parkNanos(this, Duration.ofMillis(1).toNanos());
      }
    }
    saves.clear();
    files.touch(index.entries());
    files.close(END.toNanos());
  }
}
