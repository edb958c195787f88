package dev.lily.engine.constraint;

import java.util.Arrays;
import java.util.List;

/**
 * Tokens by their bytes, as a tree in flat arrays in the order of a walk: a node's children follow
 * it, and {@link #skip} leads past them. Immutable.
 */
final class TokenTrie {
  /** The byte of each node. */
  final byte[] bytes;

  /** The node behind each node's subtree. */
  final int[] skip;

  /** Depth of each node, 1 for the first byte of a token. */
  final short[] depth;

  /** Length in characters of the longest token in each node's subtree. */
  final byte[] longest;

  /** First of the tokens that end at a node, or -1. */
  final int[] token;

  /** The next token of the same bytes as a token, or -1. */
  private final int[] sameAs;

  final int maxDepth;

  private record Entry(byte[] bytes, int token) {}

  /**
   * @param tokens ids
   * @param text bytes by id; none empty
   * @param lengths in characters, by id, at most {@link TokenVocabulary#MAX_PLAIN_LENGTH}; 1 or
   *     more
   */
  TokenTrie(int[] tokens, byte[][] text, int[] lengths) {
    List<Entry> sorted =
        Arrays.stream(tokens)
            .mapToObj(id -> new Entry(text[id], id))
            .sorted((a, b) -> Arrays.compareUnsigned(a.bytes(), b.bytes()))
            .toList();
    int size = 0;
    int deepest = 0;
    byte[] previous = {};
    for (Entry entry : sorted) {
      size += entry.bytes().length - common(previous, entry.bytes());
      deepest = Math.max(deepest, entry.bytes().length);
      previous = entry.bytes();
    }
    bytes = new byte[size];
    skip = new int[size];
    depth = new short[size];
    token = new int[size];
    longest = new byte[size];
    sameAs = new int[text.length];
    maxDepth = deepest;
    Arrays.fill(token, -1);
    Arrays.fill(sameAs, -1);
    fill(sorted, lengths);
  }

  private void fill(List<Entry> sorted, int[] lengths) {
    int[] open = new int[maxDepth + 1];
    int numOpen = 0;
    int next = 0;
    byte[] previous = {};
    for (Entry entry : sorted) {
      int common = common(previous, entry.bytes());
      while (numOpen > common) {
        skip[open[--numOpen]] = next;
      }
      for (int i = common; i < entry.bytes().length; i++) {
        bytes[next] = entry.bytes()[i];
        depth[next] = (short) (i + 1);
        open[numOpen++] = next++;
      }
      int node = open[numOpen - 1];
      sameAs[entry.token()] = token[node];
      token[node] = entry.token();
      for (int i = 0; i < numOpen; i++) {
        longest[open[i]] = (byte) Math.max(longest[open[i]], lengths[entry.token()]);
      }
      previous = entry.bytes();
    }
    while (numOpen > 0) {
      skip[open[--numOpen]] = next;
    }
  }

  private static int common(byte[] a, byte[] b) {
    int mismatch = Arrays.mismatch(a, b);
    return mismatch < 0 ? a.length : mismatch;
  }

  int size() {
    return bytes.length;
  }

  /** Allows the tokens that end at a node. */
  void allow(int node, long[] mask) {
    for (int id = token[node]; id >= 0; id = sameAs[id]) {
      mask[id >> 6] |= 1L << id;
    }
  }
}
