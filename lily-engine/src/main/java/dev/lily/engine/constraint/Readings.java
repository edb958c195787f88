package dev.lily.engine.constraint;

import java.util.Arrays;

/**
 * Where an answer may stand in its grammar after some bytes: usually at one place, at several where
 * it is still open which alternative it follows. Not thread-safe.
 */
final class Readings {
  int[] nodes = new int[4];
  int[] counters = new int[4];
  int[] stacks = new int[4];
  int size;

  /** Whether the bytes are a whole answer. */
  boolean complete;

  /** How much of the call stack they use. */
  int mark;

  void clear() {
    size = 0;
    complete = false;
  }

  /** Whether a whole answer begins with the bytes. */
  boolean isAlive() {
    return size > 0 || complete;
  }

  void add(int node, int counter, int stack, CallStack calls) {
    for (int i = 0; i < size; i++) {
      if (nodes[i] == node && counters[i] == counter && calls.areEqual(stacks[i], stack)) {
        return;
      }
    }
    if (size == Matcher.MAX_READINGS) {
      return;
    }
    if (size == nodes.length) {
      nodes = Arrays.copyOf(nodes, 2 * size);
      counters = Arrays.copyOf(counters, 2 * size);
      stacks = Arrays.copyOf(stacks, 2 * size);
    }
    nodes[size] = node;
    counters[size] = counter;
    stacks[size++] = stack;
  }
}
