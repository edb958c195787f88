package dev.lily.engine.tokenizer;

import java.util.Arrays;

/**
 * Collects the ids of one text: each piece starts as one token per UTF-8 byte, then neighbours
 * merge in the order of the merge list, leftmost first, until none is left to merge. A piece of n
 * bytes takes O(n log n) steps. Scratch of one call; not thread-safe.
 */
final class BytePairEncoder {
  private final MergeTable merges;
  private final int[] byteIds;

  /** The piece: a linked list of tokens, each at the offset of its first byte. */
  private int[] tokens = new int[64];

  private int[] next = new int[64];
  private int[] previous = new int[64];

  /** Per offset the rank of its token's merge with the next one. */
  private int[] ranks = new int[64];

  /** Possible merges, {@code rank << 32 | offset}, the smallest at 0; may hold outdated ones. */
  private long[] heap = new long[128];

  private int heapSize;

  private int[] ids = new int[64];
  private int size;

  /**
   * @param byteIds per byte, 0 to 255, its token
   */
  BytePairEncoder(MergeTable merges, int[] byteIds) {
    this.merges = merges;
    this.byteIds = byteIds;
  }

  /** The ids so far. */
  int[] toArray() {
    return Arrays.copyOf(ids, size);
  }

  void append(int id) {
    if (size == ids.length) {
      ids = Arrays.copyOf(ids, size * 2);
    }
    ids[size++] = id;
  }

  /** Appends the tokens of one piece, {@code text[start, end)}, which must be well-formed. */
  void appendPiece(String text, int start, int end) {
    int length = split(text, start, end);
    if (length > 1) {
      merge(length);
    }
    for (int at = 0; at < length; at = next[at]) {
      append(tokens[at]);
    }
  }

  /** One token per byte; returns how many. */
  private int split(String text, int start, int end) {
    reserve(utf8Length(text, start, end));
    int length = 0;
    for (int i = start; i < end; i++) {
      int c = text.charAt(i);
      if (c < 0x80) {
        tokens[length++] = byteIds[c];
      } else if (c < 0x800) {
        tokens[length++] = byteIds[0xC0 | (c >> 6)];
        tokens[length++] = byteIds[0x80 | (c & 0x3F)];
      } else {
        if (Character.isHighSurrogate((char) c)) {
          c = Character.toCodePoint((char) c, text.charAt(++i));
          tokens[length++] = byteIds[0xF0 | (c >> 18)];
          tokens[length++] = byteIds[0x80 | ((c >> 12) & 0x3F)];
        } else {
          tokens[length++] = byteIds[0xE0 | (c >> 12)];
        }
        tokens[length++] = byteIds[0x80 | ((c >> 6) & 0x3F)];
        tokens[length++] = byteIds[0x80 | (c & 0x3F)];
      }
    }
    for (int at = 0; at < length; at++) {
      next[at] = at + 1;
      previous[at] = at - 1;
    }
    return length;
  }

  private static int utf8Length(String text, int start, int end) {
    int length = end - start;
    for (int i = start; i < end; i++) {
      char c = text.charAt(i);
      // Both halves of a pair count two bytes.
      length += c < 0x80 ? 0 : c < 0x800 || Character.isSurrogate(c) ? 1 : 2;
    }
    return length;
  }

  private void merge(int length) {
    heapSize = 0;
    for (int at = 0; at < length; at++) {
      ranks[at] = rank(at, length);
      if (ranks[at] != MergeTable.NONE) {
        heap[heapSize++] = ((long) ranks[at] << 32) | at;
      }
    }
    for (int i = (heapSize >> 1) - 1; i >= 0; i--) {
      siftDown(i, heap[i]);
    }
    while (heapSize > 0) {
      long first = heap[0];
      siftDown(0, heap[--heapSize]);
      int at = (int) first;
      int rank = (int) (first >>> 32);
      if (ranks[at] != rank) {
        continue;
      }
      int right = next[at];
      tokens[at] = merges.merged(rank);
      ranks[right] = MergeTable.NONE;
      next[at] = next[right];
      if (next[at] < length) {
        previous[next[at]] = at;
      }
      offer(at, length);
      if (at > 0) {
        offer(previous[at], length);
      }
    }
  }

  private int rank(int at, int length) {
    return next[at] < length ? merges.rank(tokens[at], tokens[next[at]]) : MergeTable.NONE;
  }

  private void offer(int at, int length) {
    ranks[at] = rank(at, length);
    if (ranks[at] != MergeTable.NONE) {
      siftUp(((long) ranks[at] << 32) | at);
    }
  }

  private void siftUp(long merge) {
    int i = heapSize++;
    while (i > 0) {
      int parent = (i - 1) >> 1;
      if (heap[parent] <= merge) {
        break;
      }
      heap[i] = heap[parent];
      i = parent;
    }
    heap[i] = merge;
  }

  private void siftDown(int from, long merge) {
    int i = from;
    for (int child = 2 * i + 1; child < heapSize; child = 2 * i + 1) {
      if (child + 1 < heapSize && heap[child + 1] < heap[child]) {
        child++;
      }
      if (heap[child] >= merge) {
        break;
      }
      heap[i] = heap[child];
      i = child;
    }
    heap[i] = merge;
  }

  /** A merge takes one entry off the heap and puts two on it at most, so it stays below twice. */
  private void reserve(int length) {
    if (length > tokens.length) {
      int capacity = Math.max(length, 2 * tokens.length);
      tokens = new int[capacity];
      next = new int[capacity];
      previous = new int[capacity];
      ranks = new int[capacity];
      heap = new long[2 * capacity];
    }
  }
}
