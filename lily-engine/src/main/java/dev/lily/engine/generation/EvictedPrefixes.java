package dev.lily.engine.generation;

import java.util.LinkedHashSet;

/**
 * Remembers by their hashes which prefixes were evicted last, to say why a prompt missed. Engine
 * thread only.
 */
final class EvictedPrefixes {
  private static final int MOST = 1024;
  private static final long FACTOR = 0x9E3779B97F4A7C15L;

  private final LinkedHashSet<Long> hashes = new LinkedHashSet<>();

  private static long next(long hash, int token) {
    return (hash ^ token) * FACTOR + 1;
  }

  static long hash(int[] tokens, int length) {
    long hash = 0;
    for (int i = 0; i < length; i++) {
      hash = next(hash, tokens[i]);
    }
    return hash;
  }

  void add(long hash) {
    if (hashes.add(hash) && hashes.size() > MOST) {
      hashes.removeFirst();
    }
  }

  /** The length of the longest one that a prompt begins with; 0 if there is none. */
  int deepest(int[] prompt) {
    long hash = 0;
    int deepest = 0;
    for (int i = 0; i < prompt.length; i++) {
      hash = next(hash, prompt[i]);
      if (hashes.contains(hash)) {
        deepest = i + 1;
      }
    }
    return deepest;
  }
}
