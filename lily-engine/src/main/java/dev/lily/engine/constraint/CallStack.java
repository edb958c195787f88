package dev.lily.engine.constraint;

import java.util.Arrays;

/**
 * The stacks of rules in progress. A stack is the index of its top entry and shares what lies below
 * with others; entries are given back all at once, from a mark upwards. Not thread-safe.
 */
final class CallStack {
  static final int EMPTY = -1;

  private int[] below = new int[64];
  private int[] nodes = new int[64];
  private int[] counters = new int[64];
  private int[] depths = new int[64];
  private int[] hashes = new int[64];
  private int size;

  /** Puts a node and the counter of its rule on a stack. */
  int push(int stack, int node, int counter) {
    if (size == nodes.length) {
      grow();
    }
    below[size] = stack;
    nodes[size] = node;
    counters[size] = counter;
    depths[size] = depth(stack) + 1;
    hashes[size] = (hash(stack) * 31 + node) * 31 + counter;
    return size++;
  }

  private void grow() {
    int capacity = 2 * size;
    below = Arrays.copyOf(below, capacity);
    nodes = Arrays.copyOf(nodes, capacity);
    counters = Arrays.copyOf(counters, capacity);
    depths = Arrays.copyOf(depths, capacity);
    hashes = Arrays.copyOf(hashes, capacity);
  }

  int below(int stack) {
    return below[stack];
  }

  int node(int stack) {
    return nodes[stack];
  }

  int counter(int stack) {
    return counters[stack];
  }

  int depth(int stack) {
    return stack == EMPTY ? 0 : depths[stack];
  }

  int hash(int stack) {
    return stack == EMPTY ? 1 : hashes[stack];
  }

  boolean areEqual(int a, int b) {
    int left = a;
    int right = b;
    if (hash(left) != hash(right) || depth(left) != depth(right)) {
      return false;
    }
    while (left != right) {
      if (nodes[left] != nodes[right] || counters[left] != counters[right]) {
        return false;
      }
      left = below[left];
      right = below[right];
    }
    return true;
  }

  int mark() {
    return size;
  }

  void release(int mark) {
    size = mark;
  }

  /** Whether it is worth while to drop what no stack uses. */
  boolean isWasteful(int numStacks) {
    return size > 1024 && size > 2 * numStacks * Grammar.MAX_STACK;
  }

  /**
   * Keeps nothing but the given stacks.
   *
   * @param stacks replaced by their new indexes
   */
  void keepOnly(int[] stacks, int count) {
    int[] newIndex = new int[size];
    boolean[] used = new boolean[size];
    for (int i = 0; i < count; i++) {
      for (int s = stacks[i]; s != EMPTY && !used[s]; s = below[s]) {
        used[s] = true;
      }
    }
    int kept = 0;
    for (int s = 0; s < size; s++) { // What lies below is always older.
      if (used[s]) {
        newIndex[s] = kept;
        below[kept] = below[s] == EMPTY ? EMPTY : newIndex[below[s]];
        nodes[kept] = nodes[s];
        counters[kept] = counters[s];
        depths[kept] = depths[s];
        hashes[kept++] = hashes[s];
      }
    }
    for (int i = 0; i < count; i++) {
      stacks[i] = stacks[i] == EMPTY ? EMPTY : newIndex[stacks[i]];
    }
    size = kept;
  }
}
