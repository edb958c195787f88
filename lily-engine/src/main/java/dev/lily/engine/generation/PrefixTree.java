package dev.lily.engine.generation;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Values at positions of token sequences: a radix tree, so that sequences share what they have in
 * common. Lookups cost time in the tokens matched, not in the values held. Not thread-safe.
 */
final class PrefixTree<V> {
  /** A position of one or more sequences. */
  static final class Node<V> {
    private final Map<Integer, Node<V>> children = HashMap.newHashMap(2);
    private final int position;
    private int[] label;
    private @Nullable Node<V> parent;
    private @Nullable V value;

    private Node(@Nullable Node<V> parent, int[] label, int position) {
      this.parent = parent;
      this.label = label;
      this.position = position;
    }

    /** Tokens before it. */
    int position() {
      return position;
    }

    @Nullable V value() {
      return value;
    }

    /** The node before it, closer to the root; {@code null} for the root. */
    @Nullable Node<V> parent() {
      return parent;
    }

    /** Whether sequences part here. */
    boolean isFork() {
      return children.size() > 1;
    }
  }

  /**
   * Where a sequence leaves all others.
   *
   * @param position how many of its first tokens are in the tree
   * @param token what another sequence has there; -1 if nothing, or if all tokens are in the tree
   */
  record Divergence(int position, int token) {}

  private static final int[] NO_TOKENS = {};

  private final Node<V> root = new Node<>(null, NO_TOKENS, 0);

  /** The deepest node whose tokens are the first of a sequence, at most {@code length} of them. */
  Node<V> deepest(int[] tokens, int length) {
    Node<V> node = root;
    while (node.position < length) {
      Node<V> child = node.children.get(tokens[node.position]);
      if (child == null
          || child.position > length
          || matching(child, tokens, node.position, length) < child.label.length) {
        return node;
      }
      node = child;
    }
    return node;
  }

  /** Where a sequence leaves all those in the tree. */
  Divergence divergence(int[] tokens) {
    Node<V> node = root;
    while (node.position < tokens.length) {
      Node<V> child = node.children.get(tokens[node.position]);
      if (child == null) {
        return new Divergence(
            node.position,
            node.children.values().stream().mapToInt(other -> other.label[0]).findAny().orElse(-1));
      }
      int matching = matching(child, tokens, node.position, tokens.length);
      int position = node.position + matching;
      if (position < tokens.length && matching < child.label.length) {
        return new Divergence(position, child.label[matching]);
      }
      if (matching < child.label.length) {
        break;
      }
      node = child;
    }
    return new Divergence(tokens.length, -1);
  }

  /**
   * A node with a value that has as many of a sequence's first tokens as any: as many as {@link
   * #divergence} says.
   *
   * @return {@code null} if the tree is empty
   */
  @Nullable Node<V> closest(int[] tokens) {
    Node<V> node = root;
    while (node.position < tokens.length) {
      Node<V> child = node.children.get(tokens[node.position]);
      if (child == null) {
        break;
      }
      boolean parts = matching(child, tokens, node.position, tokens.length) < child.label.length;
      node = child;
      if (parts) {
        break;
      }
    }
    while (node.value == null && !node.children.isEmpty()) {
      node = node.children.values().iterator().next();
    }
    return node.value == null ? null : node;
  }

  /** How many tokens of a node's label a sequence has from a position on. */
  private static <V> int matching(Node<V> node, int[] tokens, int from, int length) {
    int to = Math.min(length, from + node.label.length);
    int mismatch = Arrays.mismatch(tokens, from, to, node.label, 0, to - from);
    return mismatch < 0 ? to - from : mismatch;
  }

  /** Sets the value behind the first {@code length} tokens, in place of the one before. */
  Node<V> put(int[] tokens, int length, V value) {
    Node<V> node = root;
    while (node.position < length) {
      Node<V> child = node.children.get(tokens[node.position]);
      if (child == null) {
        child = new Node<>(node, Arrays.copyOfRange(tokens, node.position, length), length);
        node.children.put(child.label[0], child);
      } else {
        int matching = matching(child, tokens, node.position, length);
        if (matching < child.label.length) {
          child = split(child, matching);
        }
      }
      node = child;
    }
    node.value = value;
    return node;
  }

  /** Puts a node into the middle of an edge; changes nothing until all memory for it is there. */
  private static <V> Node<V> split(Node<V> lower, int at) {
    Node<V> upper = Objects.requireNonNull(lower.parent);
    Node<V> middle =
        new Node<>(upper, Arrays.copyOf(lower.label, at), lower.position - lower.label.length + at);
    int[] rest = Arrays.copyOfRange(lower.label, at, lower.label.length);
    middle.children.put(rest[0], lower);
    upper.children.put(middle.label[0], middle);
    lower.label = rest;
    lower.parent = middle;
    return middle;
  }

  /** Takes a node's value away, and what of the tree leads to no other. */
  void remove(Node<V> node) {
    node.value = null;
    while (node.value == null && node.parent != null) {
      Node<V> parent = node.parent;
      if (node.children.size() > 1) {
        return;
      }
      if (node.children.isEmpty()) {
        parent.children.remove(node.label[0]);
        node.parent = null;
      } else {
        Node<V> child = node.children.values().iterator().next();
        int[] label = Arrays.copyOf(node.label, node.label.length + child.label.length);
        System.arraycopy(child.label, 0, label, node.label.length, child.label.length);
        child.label = label;
        child.parent = parent;
        parent.children.put(label[0], child);
        node.parent = null;
      }
      node = parent;
    }
  }

  boolean isEmpty() {
    return root.children.isEmpty() && root.value == null;
  }
}
