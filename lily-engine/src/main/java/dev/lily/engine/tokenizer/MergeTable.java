package dev.lily.engine.tokenizer;

import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The merge list: which two neighbouring tokens become which one, and which merge goes first.
 * Immutable.
 */
final class MergeTable {
  /** The rank of a pair that is not in the list. */
  static final int NONE = -1;

  private static final long EMPTY = -1;

  private final long[] pairs;
  private final int[] ranks;
  private final int[] merged;
  private final long seed = ThreadLocalRandom.current().nextLong();

  /**
   * @param left ids of the left parts, the merge that goes first at index 0
   * @param right ids of the right parts
   * @param merged ids of the results; handed over
   * @throws TokenizerException if a pair is listed twice
   */
  MergeTable(int[] left, int[] right, int[] merged) {
    int slots = Integer.highestOneBit(Math.max(1, merged.length)) << 2;
    this.pairs = new long[slots];
    this.ranks = new int[slots];
    this.merged = merged;
    Arrays.fill(pairs, EMPTY);
    for (int rank = 0; rank < merged.length; rank++) {
      long pair = pair(left[rank], right[rank]);
      int slot = slot(pair);
      if (pairs[slot] == pair) {
        throw new TokenizerException(
            "Merges "
                + ranks[slot]
                + " and "
                + rank
                + " join the same two tokens, "
                + left[rank]
                + " and "
                + right[rank]
                + ". Is the download complete?");
      }
      pairs[slot] = pair;
      ranks[slot] = rank;
    }
  }

  /** The place of a pair in the list, lower goes first, or {@link #NONE}. */
  int rank(int left, int right) {
    long pair = pair(left, right);
    int slot = slot(pair);
    return pairs[slot] == pair ? ranks[slot] : NONE;
  }

  /** The token that a merge gives. */
  int merged(int rank) {
    return merged[rank];
  }

  private static long pair(int left, int right) {
    return ((long) left << 32) | right;
  }

  /** Where the pair is or would be. The seed keeps a crafted file from making long probes. */
  private int slot(long pair) {
    long hash = pair ^ seed;
    hash = (hash ^ (hash >>> 33)) * 0xff51afd7ed558ccdL;
    hash = (hash ^ (hash >>> 33)) * 0xc4ceb9fe1a85ec53L;
    int mask = pairs.length - 1;
    int slot = (int) (hash >>> 32) & mask;
    while (pairs[slot] != pair && pairs[slot] != EMPTY) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }
}
