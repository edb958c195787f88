package dev.lily.engine.generation;

import dev.lily.engine.generation.PrefixTree.Node;
import dev.lily.engine.generation.disk.DiskEntry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Which entries have files: by their tokens, and by when they were used. An entry counts as used
 * whenever one that continues it is, so that the one used longest ago is never needed by another.
 * Engine thread only.
 */
final class DiskIndex {
  private final long maxBytes;
  private final PrefixTree<DiskEntry> tree = new PrefixTree<>();
  private final LinkedHashMap<DiskEntry, Node<DiskEntry>> leastRecent = new LinkedHashMap<>();
  private final ArrayDeque<DiskEntry> others = new ArrayDeque<>();
  private long bytes;

  DiskIndex(long maxBytes) {
    this.maxBytes = maxBytes;
  }

  int size() {
    return leastRecent.size() + others.size();
  }

  long bytes() {
    return bytes;
  }

  /** Adds a file of another model or format, used after those added before. */
  void addOther(DiskEntry other) {
    others.add(other);
    bytes += other.bytes();
  }

  /** Adds an entry as the one used last; whether there was none of the same tokens. */
  boolean add(DiskEntry entry, int[] tokens) {
    if (at(tokens, entry.position()) != null) {
      return false;
    }
    leastRecent.put(entry, tree.put(tokens, entry.position(), entry));
    bytes += entry.bytes();
    touch(entry);
    return true;
  }

  /** The entry that has seen exactly the first {@code length} tokens. */
  @Nullable DiskEntry at(int[] tokens, int length) {
    DiskEntry entry = deepest(tokens, length);
    return entry != null && entry.position() == length ? entry : null;
  }

  /** The deepest entry that has seen the first of these tokens, at most {@code length} of them. */
  @Nullable DiskEntry deepest(int[] tokens, int length) {
    for (Node<DiskEntry> node = tree.deepest(tokens, length); node != null; node = node.parent()) {
      if (node.value() != null) {
        return node.value();
      }
    }
    return null;
  }

  /** Counts an entry as used, and then those that it continues. */
  void touch(DiskEntry used) {
    for (DiskEntry entry = used; entry != null; entry = entry.parent()) {
      Node<DiskEntry> node = leastRecent.get(entry);
      if (node != null) {
        leastRecent.putLast(entry, node);
      }
    }
  }

  /** All entries, the one used longest ago first. */
  List<DiskEntry> entries() {
    return List.copyOf(leastRecent.keySet());
  }

  /**
   * Forgets entries until so many bytes have room: those of other models first, then those used
   * longest ago.
   *
   * @param kept entries that must stay, with all that they continue
   * @param gone receives what was forgotten, to be deleted in this order
   * @return whether there is room now
   */
  boolean makeRoom(long needed, List<DiskEntry> kept, List<DiskEntry> gone) {
    long least = needed;
    for (DiskEntry entry : kept) {
      least += entry.chain().stream().mapToLong(DiskEntry::bytes).sum();
    }
    if (least > maxBytes) {
      return false;
    }
    while (bytes + needed > maxBytes) {
      if (!others.isEmpty()) {
        DiskEntry other = others.remove();
        bytes -= other.bytes();
        gone.add(other);
      } else {
        DiskEntry oldest = leastRecent.firstEntry().getKey();
        if (kept.stream().anyMatch(entry -> entry.needs(oldest))) {
          return false;
        }
        forget(oldest);
        gone.add(oldest);
      }
    }
    return true;
  }

  /** Forgets an entry, and before it all that continue it; what was forgotten. */
  List<DiskEntry> remove(DiskEntry entry) {
    List<DiskEntry> gone = new ArrayList<>();
    for (Map.Entry<DiskEntry, Node<DiskEntry>> each : leastRecent.entrySet()) {
      if (each.getKey().needs(entry)) {
        gone.add(each.getKey());
      }
    }
    // In the order of use, those that continue an entry come before it.
    gone.forEach(this::forget);
    return gone;
  }

  private void forget(DiskEntry entry) {
    Node<DiskEntry> node = leastRecent.remove(entry);
    if (node != null) {
      tree.remove(node);
      bytes -= entry.bytes();
    }
  }
}
