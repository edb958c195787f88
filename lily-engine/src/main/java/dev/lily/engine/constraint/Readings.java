package dev.lily.engine.constraint;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

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

  /** Where each byte leads, as far as it is known; made only for those that are kept in a memo. */
  @Nullable Readings[] next = new @Nullable Readings[0];

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
      reserve(2 * size);
    }
    nodes[size] = node;
    counters[size] = counter;
    stacks[size++] = stack;
  }

  private void reserve(int capacity) {
    if (nodes.length < capacity) {
      nodes = Arrays.copyOf(nodes, capacity);
      counters = Arrays.copyOf(counters, capacity);
      stacks = Arrays.copyOf(stacks, capacity);
    }
  }

  void copyFrom(Readings other) {
    reserve(other.size);
    System.arraycopy(other.nodes, 0, nodes, 0, other.size);
    System.arraycopy(other.counters, 0, counters, 0, other.size);
    System.arraycopy(other.stacks, 0, stacks, 0, other.size);
    size = other.size;
    complete = other.complete;
  }

  int hash(CallStack calls) {
    int hash = complete ? 1 : 0;
    for (int i = 0; i < size; i++) {
      hash = ((hash * 31 + nodes[i]) * 31 + counters[i]) * 31 + calls.hash(stacks[i]);
    }
    return hash * 0x9E3779B1;
  }

  boolean isSameAs(Readings other, CallStack calls) {
    if (size != other.size || complete != other.complete) {
      return false;
    }
    for (int i = 0; i < size; i++) {
      if (nodes[i] != other.nodes[i]
          || counters[i] != other.counters[i]
          || !calls.areEqual(stacks[i], other.stacks[i])) {
        return false;
      }
    }
    return true;
  }
}
