package dev.lily.engine.generation;

import dev.lily.engine.generation.PrefixTree.Node;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.StatePool;
import java.util.LinkedHashSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Snapshots of sequences by their tokens, so that prompts that begin alike are not read again.
 * Within its budget the one used longest ago leaves first, pinned ones after all others; when
 * running sequences need pages, it gives up as many as it takes. Engine thread only.
 */
final class PrefixCache {
  private static final Logger log = LoggerFactory.getLogger(PrefixCache.class);

  /**
   * A snapshot in the tree.
   *
   * @param hash of its tokens
   * @param pass passes submitted before it was made
   */
  private record Entry(SequenceState.Snapshot snapshot, long hash, long pass) {}

  private static final int[] NOWHERE = {};

  private final StatePool states;
  private final PrefixCacheOptions options;
  private final SnapshotPositions positions;
  private final Counters counters;
  private final PrefixTree<Entry> tree = new PrefixTree<>();
  private final LinkedHashSet<Node<Entry>> leastRecent = new LinkedHashSet<>();
  private final LinkedHashSet<Node<Entry>> pinned = new LinkedHashSet<>();
  private final EvictedPrefixes evicted = new EvictedPrefixes();
  private long passesSubmitted;
  private long passesEnded;

  PrefixCache(StatePool states, PrefixCacheOptions options, int messageStart, Counters counters) {
    this.states = states;
    this.options = options;
    this.counters = counters;
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
   * @return the tokens that need not be read
   */
  int restore(SequenceState state, int[] prompt, Ticket ticket) {
    if (isOff()) {
      return 0;
    }
    Node<Entry> node = deepest(prompt, true);
    Entry entry = node == null ? null : node.value();
    int cached = entry == null ? 0 : entry.snapshot.position();
    if (log.isDebugEnabled()) {
      log.debug(
          "Request {}: {} of {} prompt tokens are cached; {}",
          ticket,
          cached,
          prompt.length,
          why(prompt, cached));
    }
    if (node != null && entry != null) {
      state.restore(entry.snapshot);
      touch(node);
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

  /**
   * Whether the copy is known to be good: a device makes it at the latest in the pass submitted
   * next, which has ended well, or is the one that the restored sequence will be in.
   */
  private boolean isUsable(Entry entry) {
    return passesEnded > entry.pass || passesEnded == passesSubmitted;
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
    long bytes = options.snapshotBytes() + (long) states.pagesFor(position) * options.pageBytes();
    if (isOff() || position == 0 || bytes > options.bytes()) {
      return;
    }
    Node<Entry> known = tree.deepest(tokens, position);
    boolean pins = options.pinsFirstMessage() && positions.isFirstMessageEnd(tokens, position);
    if (known.position() == position && known.value() != null) {
      touch(known);
      if (pins) {
        pin(known);
      }
      return;
    }
    while (bytes() + bytesOf(state) > options.bytes()) {
      evictOldest();
    }
    SequenceState.Snapshot snapshot = state.snapshot();
    while (snapshot == null && evictOldest()) {
      snapshot = state.snapshot();
    }
    if (snapshot == null) {
      return;
    }
    Node<Entry> node = put(tokens, snapshot);
    if (pins) {
      pin(node);
    }
    show();
  }

  /** Bytes that a snapshot would take beside those there are. */
  private long bytesOf(SequenceState state) {
    return options.snapshotBytes() + state.pagesWithoutSnapshot() * options.pageBytes();
  }

  private Node<Entry> put(int[] tokens, SequenceState.Snapshot snapshot) {
    int position = snapshot.position();
    Node<Entry> node = null;
    try {
      long hash = EvictedPrefixes.hash(tokens, position);
      node = tree.put(tokens, position, new Entry(snapshot, hash, passesSubmitted));
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

  private long bytes() {
    return numSnapshots() * options.snapshotBytes() + states.snapshotPages() * options.pageBytes();
  }

  /** Gives up the entry used longest ago; whether there was one. */
  private boolean evictOldest() {
    if (numSnapshots() == 0) {
      return false;
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
    show();
  }

  void passSubmitted() {
    passesSubmitted++;
  }

  void passEnded() {
    passesEnded++;
  }

  private void show() {
    counters.showCache(numSnapshots(), bytes());
  }
}
