package dev.lily.engine.constraint;

import dev.lily.engine.constraint.GrammarBuilder.Edge;
import dev.lily.engine.constraint.GrammarBuilder.Node;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;

/** Finds what of a grammar under construction can never be completed, and what never begins. */
final class GrammarAnalysis {
  static final int UNREACHABLE = Integer.MAX_VALUE;

  private final List<Node> nodes;
  private final Map<Integer, String> places;

  /**
   * @param places where rules come from, by their start
   */
  GrammarAnalysis(List<Node> nodes, Map<Integer, String> places) {
    this.nodes = nodes;
    this.places = places;
  }

  /** For each node the calls in progress on the flattest way to its rule's end. */
  int[] minStack() {
    int[] least = new int[nodes.size()];
    Arrays.fill(least, UNREACHABLE);
    List<List<Integer>> users = new ArrayList<>();
    for (int n = 0; n < nodes.size(); n++) {
      users.add(new ArrayList<>(2));
    }
    ArrayDeque<Integer> pending = new ArrayDeque<>();
    for (int n = 0; n < nodes.size(); n++) {
      for (Edge edge : nodes.get(n).edges) {
        users.get(edge.target()).add(n);
        if (edge.call() != Grammar.NO_CALL) {
          users.get(edge.call()).add(n);
        }
      }
      if (nodes.get(n).ends) {
        least[n] = 0;
        pending.add(n);
      }
    }
    while (!pending.isEmpty()) {
      for (int user : users.get(pending.remove())) {
        int found = UNREACHABLE;
        for (Edge edge : nodes.get(user).edges) {
          found = Math.min(found, leastThrough(edge, least));
        }
        if (!nodes.get(user).ends && found < least[user]) {
          least[user] = found;
          pending.add(user);
        }
      }
    }
    return least;
  }

  static int leastThrough(Edge edge, int[] least) {
    if (edge.call() == Grammar.NO_CALL) {
      return least[edge.target()];
    }
    if (least[edge.call()] == UNREACHABLE || least[edge.target()] == UNREACHABLE) {
      return UNREACHABLE;
    }
    return Math.max(least[edge.call()] + 1, least[edge.target()]);
  }

  /** Place of the rule begun last of those that can never end; the deepest, as a rule. */
  String lastUnreachable(int[] minStack) {
    String last = "";
    for (Map.Entry<Integer, String> place : places.entrySet()) {
      if (minStack[place.getKey()] == UNREACHABLE) {
        last = place.getValue();
      }
    }
    return last;
  }

  private String place(List<int[]> trail) {
    for (int[] position : trail.reversed()) {
      String place = places.get(position[0]);
      if (place != null) {
        return place;
      }
    }
    return "";
  }

  /**
   * Refuses rules that come back to themselves before they take a byte.
   *
   * @throws InvalidConstraintException if there is one
   */
  void refuseEndlessExpansion(int[] minStack) {
    BitSet nullable = nullable();
    byte[] colour = new byte[nodes.size()];
    List<int[]> trail = new ArrayList<>();
    for (int root = 0; root < nodes.size(); root++) {
      if (colour[root] != 0 || minStack[root] == UNREACHABLE) {
        continue;
      }
      trail.add(new int[] {root, 0});
      colour[root] = 1;
      while (!trail.isEmpty()) {
        int[] top = trail.getLast();
        int next = successor(top, nullable);
        if (next < 0) {
          colour[top[0]] = 2;
          trail.removeLast();
        } else if (colour[next] == 1) {
          throw new InvalidConstraintException(
              place(trail),
              "A reference leads back to itself with nothing in between, so there is no value to"
                  + " begin with. Take it out of the $ref, anyOf or oneOf it is in.");
        } else if (colour[next] == 0 && minStack[next] != UNREACHABLE) {
          colour[next] = 1;
          trail.add(new int[] {next, 0});
        }
      }
    }
  }

  /** The next node entered without a byte, or -1; each edge counts twice, for call and return. */
  private int successor(int[] position, BitSet nullable) {
    List<Edge> edges = nodes.get(position[0]).edges;
    while (position[1] < 2 * edges.size()) {
      Edge edge = edges.get(position[1] / 2);
      boolean back = position[1]++ % 2 == 1;
      if (edge.takesByte()) {
        continue;
      }
      if (edge.call() == Grammar.NO_CALL) {
        if (!back) {
          return edge.target();
        }
      } else if (!back) {
        return edge.call();
      } else if (nullable.get(edge.call())) {
        return edge.target();
      }
    }
    return -1;
  }

  /** Nodes from which a rule's end is reached without a byte. */
  private BitSet nullable() {
    BitSet nullable = new BitSet();
    boolean changed = true;
    while (changed) {
      changed = false;
      for (int n = nodes.size() - 1; n >= 0; n--) {
        if (!nullable.get(n) && isNullable(nodes.get(n), nullable)) {
          nullable.set(n);
          changed = true;
        }
      }
    }
    return nullable;
  }

  private static boolean isNullable(Node node, BitSet nullable) {
    if (node.ends) {
      return true;
    }
    for (Edge edge : node.edges) {
      boolean through =
          !edge.takesByte()
              && nullable.get(edge.target())
              && (edge.call() == Grammar.NO_CALL || nullable.get(edge.call()));
      if (through) {
        return true;
      }
    }
    return false;
  }
}
