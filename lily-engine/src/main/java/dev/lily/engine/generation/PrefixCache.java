package dev.lily.engine.generation;

import dev.lily.engine.generation.PrefixTree.Node;
import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.StatePool;
import java.util.LinkedHashSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Snapshots of sequences by their tokens, so that prompts that begin alike are not read again.
 * Within its budget the one used longest ago leaves first, pinned ones after all others; when
 * running sequences need pages, it gives up as many as it takes. What has left memory may still be
 * {@linkplain DiskTier on disk}. Engine thread only.
 */
final class PrefixCache {
  private static final Logger log = LoggerFactory.getLogger(PrefixCache.class);

  /**
   * A snapshot in the tree.
   *
   * @param hash of its tokens
   * @param pass passes submitted before it was made; {@link #LONG_AGO} if it is complete
   */
  private record Entry(SequenceState.Snapshot snapshot, long hash, long pass) {}

  private static final long LONG_AGO = -1;

  private static final int[] NOWHERE = {};

  private final StatePool states;
  private final PrefixCacheOptions options;
  private final SnapshotPositions positions;
  private final Counters counters;
  private final PrefixTree<Entry> tree = new PrefixTree<>();
  private final LinkedHashSet<Node<Entry>> leastRecent = new LinkedHashSet<>();
  private final LinkedHashSet<Node<Entry>> pinned = new LinkedHashSet<>();
  private final EvictedPrefixes evicted = new EvictedPrefixes();
  private final Passes passes;
  private final @Nullable DiskTier disk;

  /**
   * @param disk {@code null} if there is none
   */
  PrefixCache(
      StatePool states,
      PrefixCacheOptions options,
      int messageStart,
      Counters counters,
      Passes passes,
      @Nullable DiskTier disk) {
    this.states = states;
    this.options = options;
    this.counters = counters;
    this.passes = passes;
    this.disk = disk;
    positions = new SnapshotPositions(messageStart, options.interval());
    states.onShortage(this::evictOldest);
  }

  boolean isOff() {
    return options.bytes() == 0 || states.maxSnapshots() == 0;
  }

  /** Where the state of a prompt is to be kept; ascending. */
  int[] positions(int[] prompt) {
    return isOff() ? NOWHERE : positions.of(prompt);
  }

  /**
   * Takes an empty sequence as far into a prompt as is known, but not to its end.
   *
   * @param awaited what was read from disk for it
   * @return the tokens that need not be read
   */
  int restore(SequenceState state, int[] prompt, Ticket ticket, @Nullable DiskEntry awaited) {
    if (isOff()) {
      return 0;
    }
    Node<Entry> node = deepest(prompt, true);
    Entry entry = node == null ? null : node.value();
    int cached = entry == null ? 0 : entry.snapshot.position();
    boolean fromDisk = awaited != null && cached == awaited.position();
    if (log.isDebugEnabled()) {
      log.debug(
          "Request {}: {} of {} prompt tokens are cached{}; {}",
          ticket,
          cached,
          prompt.length,
          fromDisk ? ", read from disk" : "",
          why(prompt, cached));
    }
    if (node != null && entry != null) {
      state.restore(entry.snapshot);
      touch(node);
      if (disk != null) {
        disk.touch(prompt, cached);
      }
    }
    if (fromDisk) {
      counters.disk().countHit();
    }
    counters.countCached(cached);
    return cached;
  }

  /** The deepest snapshot that leaves a token of a prompt to be read. */
  private @Nullable Node<Entry> deepest(int[] prompt, boolean onlyUsable) {
    Node<Entry> node = tree.deepest(prompt, prompt.length - 1);
    while (node != null) {
      Entry entry = node.value();
      if (entry != null && (!onlyUsable || isUsable(entry))) {
        return node;
      }
      node = node.parent();
    }
    return null;
  }

  /** How many tokens of a prompt are cached, whether or not they may be used already. */
  int depth(int[] prompt) {
    Node<Entry> node = deepest(prompt, false);
    return node == null ? 0 : node.position();
  }

  /** Whether what is cached of a prompt may be used only later. */
  boolean isBeingCopied(int[] prompt) {
    Node<Entry> node = deepest(prompt, false);
    return node != null && node.value() != null && !isUsable(node.value());
  }

  /** Whether the copy is known to be good, or will be made in the restored sequence's own pass. */
  private boolean isUsable(Entry entry) {
    return passes.areOver(entry.pass);
  }

  /**
   * What on disk would spare more of a prompt to be read than what is in memory.
   *
   * @return {@code null} if nothing does
   */
  @Nullable DiskEntry onDisk(int[] prompt) {
    return disk == null ? null : disk.deepest(prompt, depth(prompt));
  }

  /** Whether an entry is the one that is being read from disk. */
  boolean isLoading(DiskEntry entry) {
    return disk != null && disk.isLoading(entry);
  }

  /**
   * Has an entry read from disk into memory, after the one that is being read.
   *
   * @return whether there is room for it in memory
   */
  boolean load(DiskEntry entry, int[] prompt) {
    if (disk == null || bytes(entry.position()) > options.bytes()) {
      return false;
    }
    if (disk.isLoading()) {
      return true;
    }
    int pages = states.device().layout().numPages() - states.sequencePages();
    if (states.pagesFor(entry.position()) > pages) {
      return false;
    }
    SequenceState.Snapshot target;
    int sharedPages;
    do {
      Node<Entry> node = tree.closest(prompt);
      Entry base = node == null ? null : node.value();
      int common = base == null || !isUsable(base) ? 0 : tree.divergence(prompt).position();
      int shared = base == null ? 0 : Math.min(common, base.snapshot.position());
      sharedPages = Math.min(shared, entry.position()) / states.pageTokens();
      target =
          states.blankSnapshot(entry.position(), base == null ? null : base.snapshot, sharedPages);
    } while (target == null && evictOldest());
    if (target == null) {
      return false;
    }
    disk.beginLoad(entry, prompt, target, sharedPages);
    keepWithinBytes();
    return true;
  }

  /**
   * Moves bytes to the disk and from it.
   *
   * @param idle whether no request is served
   * @return whether there was something to move
   */
  boolean moveBytes(boolean idle) {
    if (disk == null) {
      return false;
    }
    boolean moved = disk.step(idle);
    SnapshotLoad loaded = disk.takeLoaded();
    if (loaded != null) {
      if (at(loaded.tokens(), loaded.target().position()) == null) {
        put(loaded.tokens(), loaded.target(), LONG_AGO);
      } else {
        loaded.target().close(); // a request has read the tokens in the meantime
      }
      keepWithinBytes();
      show();
    }
    return moved;
  }

  /**
   * Nanoseconds until {@link #moveBytes} is to be called though nobody signals; 0 for at once,
   * {@link Nanos#FOREVER} for never.
   */
  long untilDue() {
    return disk == null ? Nanos.FOREVER : disk.untilDue();
  }

  /** Writes to disk what is not there yet, and ends its use. */
  void close() {
    if (disk != null) {
      disk.close();
    }
  }

  /** Counts a node as used, and those before it where conversations part. */
  private void touch(Node<Entry> used) {
    moveLast(used);
    for (Node<Entry> node = used.parent(); node != null; node = node.parent()) {
      if (node.isFork() && node.value() != null) {
        moveLast(node);
      }
    }
  }

  private void moveLast(Node<Entry> node) {
    (pinned.contains(node) ? pinned : leastRecent).addLast(node);
  }

  /** Has a node leave after all others; so do at most half of the snapshots. */
  private void pin(Node<Entry> node) {
    leastRecent.remove(node);
    pinned.addLast(node);
    if (pinned.size() > states.maxSnapshots() / 2) {
      leastRecent.addLast(pinned.removeFirst());
    }
  }

  /** Why no more of a prompt is cached; the end of a sentence. */
  String why(int[] prompt, int cached) {
    int gone = evicted.deepest(prompt);
    if (gone > cached) {
      return "a snapshot at %d was evicted".formatted(gone);
    }
    PrefixTree.Divergence divergence = tree.divergence(prompt);
    int position = divergence.position();
    if (position == prompt.length) {
      return "the last snapshot before its end was taken";
    }
    String where =
        divergence.token() < 0
            ? "what was read before ends at %d".formatted(position)
            : "it leaves what was read before at %d, with token %d instead of %d"
                .formatted(position, prompt[position], divergence.token());
    return position == cached ? where : where + ", and there is no snapshot in between";
  }

  /**
   * Keeps a sequence's state, if there is room for it.
   *
   * @param tokens at least those the state has seen
   */
  void keep(SequenceState state, int[] tokens) {
    int position = state.position();
    if (isOff() || position == 0 || bytes(position) > options.bytes()) {
      return;
    }
    Node<Entry> known = at(tokens, position);
    boolean pins = options.pinsFirstMessage() && positions.isFirstMessageEnd(tokens, position);
    if (known != null) {
      touch(known);
      if (pins) {
        pin(known);
      }
      return;
    }
    while (bytes() + bytesOf(state) > options.bytes()) {
      if (!evictOldest()) {
        return;
      }
    }
    SequenceState.Snapshot snapshot = state.snapshot();
    while (snapshot == null && evictOldest()) {
      snapshot = state.snapshot();
    }
    if (snapshot == null) {
      return;
    }
    Node<Entry> node = put(tokens, snapshot, passes.submitted());
    if (pins) {
      pin(node);
    }
    if (disk != null) {
      disk.made(snapshot, tokens);
    }
    show();
  }

  /** Bytes that a snapshot would take beside those there are. */
  private long bytesOf(SequenceState state) {
    return options.snapshotBytes() + state.pagesWithoutSnapshot() * options.pageBytes();
  }

  private void keepWithinBytes() {
    while (bytes() > options.bytes() && evictOldest()) {}
  }

  /** The snapshot of exactly the first {@code position} tokens. */
  private @Nullable Node<Entry> at(int[] tokens, int position) {
    Node<Entry> node = tree.deepest(tokens, position);
    return node.position() == position && node.value() != null ? node : null;
  }

  private Node<Entry> put(int[] tokens, SequenceState.Snapshot snapshot, long pass) {
    int position = snapshot.position();
    Node<Entry> node = null;
    try {
      long hash = EvictedPrefixes.hash(tokens, position);
      node = tree.put(tokens, position, new Entry(snapshot, hash, pass));
      leastRecent.addLast(node);
      return node;
    } catch (Throwable e) {
      if (node != null) {
        tree.remove(node);
      }
      snapshot.close();
      throw e;
    }
  }

  private int numSnapshots() {
    return leastRecent.size() + pinned.size();
  }

  /** With the one that is being read from disk. */
  private long bytes() {
    return states.snapshots() * options.snapshotBytes()
        + states.snapshotPages() * options.pageBytes();
  }

  /** What one snapshot takes that shares nothing. */
  private long bytes(int position) {
    return options.snapshotBytes() + (long) states.pagesFor(position) * options.pageBytes();
  }

  /**
   * Gives up the entry used longest ago, or if there is none the one that is being read from disk;
   * whether there was one.
   */
  private boolean evictOldest() {
    if (numSnapshots() == 0) {
      return disk != null && disk.abandonLoad();
    }
    drop((leastRecent.isEmpty() ? pinned : leastRecent).removeFirst());
    counters.countEvicted();
    show();
    return true;
  }

  private void drop(Node<Entry> node) {
    Entry entry = node.value();
    tree.remove(node);
    if (entry != null) {
      evicted.add(entry.hash);
      if (disk != null) {
        disk.closing(entry.snapshot);
      }
      entry.snapshot.close();
    }
  }

  /** Forgets everything: after a failure no state is to be trusted. */
  void clear() {
    leastRecent.addAll(pinned);
    pinned.clear();
    while (!leastRecent.isEmpty()) {
      drop(leastRecent.removeFirst());
    }
    if (disk != null) {
      disk.abandonLoad();
    }
    show();
  }

  private void show() {
    counters.showCache(numSnapshots(), bytes());
  }
}
