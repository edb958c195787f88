package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Collects the nodes of a {@link Grammar} and makes sure that it has no dead ends and does not
 * expand for ever.
 */
final class GrammarBuilder {
  static final int UNBOUNDED = Integer.MAX_VALUE;

  /** Most nodes, and most edges for each on average. */
  static final int MAX_NODES = 300_000;

  private static final int EDGES_PER_NODE = 8;
  private static final int NOTHING = 1 << 19;

  /**
   * A way to another node.
   *
   * @param call the start of the rule on the way, or {@link Grammar#NO_CALL}
   */
  record Edge(int label, int target, int call) {
    boolean takesByte() {
      return call == Grammar.NO_CALL && (label & NOTHING) == 0;
    }
  }

  /** A node while it is built. */
  static final class Node {
    final List<Edge> edges = new ArrayList<>(2);
    boolean ends;
    boolean plainLoop;
    boolean uniform;
    int plainDepth;
    int min;
    int max = UNBOUNDED;
  }

  private final List<Node> nodes = new ArrayList<>();

  /** Where in the caller's words rules come from, by their start, in the order they were begun. */
  private final Map<Integer, String> places = new LinkedHashMap<>();

  private long numEdges;

  /** A node without bounds. */
  int node() {
    return node(0, UNBOUNDED);
  }

  /** A node of a rule whose counting nodes all have these bounds. */
  int counting(int min, int max) {
    int node = node(min, max);
    nodes.get(node).uniform = true;
    return node;
  }

  /** A node whose edges may compare the rule's counter with its own bounds. */
  int node(int min, int max) {
    if (nodes.size() >= MAX_NODES) {
      throw new TooLarge();
    }
    Node node = new Node();
    node.min = min;
    node.max = max;
    nodes.add(node);
    return nodes.size() - 1;
  }

  /** Notes for messages where the rule that starts at a node comes from. */
  void comesFrom(int node, String path) {
    places.put(node, path);
  }

  /** Makes a node end its rule. */
  void end(int node) {
    nodes.get(node).ends = true;
  }

  /** A new node that ends its rule. */
  int endNode() {
    int node = node();
    end(node);
    return node;
  }

  /**
   * Marks a node at which every plain character (see {@link TokenVocabulary}) leads back to it and
   * raises the counter, as long as it is below the maximum.
   */
  void plainLoop(int node) {
    nodes.get(node).plainLoop = true;
  }

  void bytes(int from, int low, int high, int to) {
    bytes(from, low, high, to, 0);
  }

  void bytes(int from, int low, int high, int to, int flags) {
    add(from, new Edge(low | (high << 8) | flags, to, Grammar.NO_CALL));
  }

  void epsilon(int from, int to) {
    epsilon(from, to, 0);
  }

  void epsilon(int from, int to, int flags) {
    add(from, new Edge(NOTHING | flags, to, Grammar.NO_CALL));
  }

  /**
   * @param rule the start node of the rule
   */
  void call(int from, int rule, int to) {
    call(from, rule, to, 0);
  }

  void call(int from, int rule, int to, int flags) {
    add(from, new Edge(NOTHING | flags, to, rule));
  }

  private void add(int from, Edge edge) {
    if (++numEdges > (long) MAX_NODES * EDGES_PER_NODE) {
      throw new TooLarge();
    }
    nodes.get(from).edges.add(edge);
  }

  /** Takes fixed bytes and returns the node behind them. */
  int literal(int from, byte[] bytes) {
    int at = from;
    for (byte b : bytes) {
      int next = node();
      bytes(at, b & 0xFF, b & 0xFF, next);
      at = next;
    }
    return at;
  }

  /** Takes one of several texts, sharing what they start with. */
  void literals(int from, Collection<byte[]> texts, int to) {
    Map<Integer, TreeMap<Integer, Integer>> children = new TreeMap<>();
    BitSet whole = new BitSet();
    int root = node();
    epsilon(from, root);
    for (byte[] text : texts) {
      int at = root;
      for (byte b : text) {
        TreeMap<Integer, Integer> edges = children.computeIfAbsent(at, _ -> new TreeMap<>());
        Integer next = edges.get(b & 0xFF);
        if (next == null) {
          next = node();
          edges.put(b & 0xFF, next);
          bytes(at, b & 0xFF, b & 0xFF, next);
        }
        at = next;
      }
      if (!whole.get(at)) {
        whole.set(at);
        epsilon(at, to);
      }
    }
  }

  /** Takes a text of a regular language. */
  void language(int from, Dfa dfa, int to) {
    int first = nodes.size();
    int[] plainDepths = PlainDepth.of(dfa);
    for (int state = 0; state < dfa.numStates(); state++) {
      nodes.get(node()).plainDepth = plainDepths[state];
    }
    epsilon(from, first);
    for (int state = 0; state < dfa.numStates(); state++) {
      int low = 0;
      while (low < 256) {
        int target = dfa.step(state, low);
        int high = low;
        while (high < 255 && dfa.step(state, high + 1) == target) {
          high++;
        }
        if (target != ByteAutomaton.DEAD) {
          bytes(first + state, low, high, first + target);
        }
        low = high + 1;
      }
      if (dfa.accepts(state)) {
        epsilon(first + state, to);
      }
    }
  }

  /**
   * Takes a text of a regular language whose number of scalar values is within the bounds. Needs a
   * rule of its own, whose counter is 0; from every state between characters the language must
   * allow to end and to go on.
   */
  void countedLanguage(int from, Dfa dfa, int min, int max, int to) {
    int first = nodes.size();
    for (int state = 0; state < dfa.numStates(); state++) {
      counting(min, max);
    }
    epsilon(from, first);
    for (int state = 0; state < dfa.numStates(); state++) {
      int low = 0;
      while (low < 256) {
        int target = dfa.step(state, low);
        boolean begins = beginsCharacter(low);
        int high = low;
        while (high < 255
            && dfa.step(state, high + 1) == target
            && beginsCharacter(high + 1) == begins) {
          high++;
        }
        if (target != ByteAutomaton.DEAD) {
          int flags = begins ? Grammar.BELOW_MAX | Grammar.RAISE : 0;
          bytes(first + state, low, high, first + target, flags);
        }
        low = high + 1;
      }
      if (dfa.accepts(state)) {
        epsilon(first + state, to, Grammar.AT_LEAST_MIN);
      }
    }
  }

  private static boolean beginsCharacter(int unsignedByte) {
    return (unsignedByte & 0xC0) != 0x80;
  }

  /**
   * Finishes the grammar.
   *
   * @throws InvalidConstraintException if nothing can ever match, or a rule calls itself without
   *     anything in between
   */
  Grammar build(int start) {
    GrammarAnalysis analysis = new GrammarAnalysis(nodes, places);
    int[] minStack = analysis.minStack();
    if (minStack[start] == GrammarAnalysis.UNREACHABLE) {
      throw new InvalidConstraintException(
          analysis.lastUnreachable(minStack),
          "Nothing can match: what is required contradicts itself or contains itself for ever."
              + " Make a part optional, or give the recursion a base case such as null or an empty"
              + " array.");
    }
    if (minStack[start] > Grammar.MAX_STACK / 2) {
      throw new InvalidConstraintException(
          "",
          "Even the shortest match is nested %d deep; at most %d is allowed."
              .formatted(minStack[start], Grammar.MAX_STACK / 2));
    }
    analysis.refuseEndlessExpansion(minStack);
    return freeze(start, minStack);
  }

  private Grammar freeze(int start, int[] minStack) {
    int size = nodes.size();
    int[] byteEdges = new int[size];
    int[] otherEdges = new int[size + 1];
    int[] labels = new int[(int) numEdges];
    int[] targets = new int[labels.length];
    int[] calls = new int[labels.length];
    boolean[] ends = new boolean[size];
    boolean[] plainLoops = new boolean[size];
    int[] plainDepth = new int[size];
    boolean[] uniform = new boolean[size];
    int[] minimum = new int[size];
    int[] maximum = new int[size];
    int[] saturation = new int[size];
    int[] first = new int[size + 1];
    int count = 0;
    for (int n = 0; n < size; n++) {
      Node node = nodes.get(n);
      first[n] = count;
      node.edges.removeIf(
          edge -> GrammarAnalysis.leastThrough(edge, minStack) == GrammarAnalysis.UNREACHABLE);
      node.edges.sort(
          (a, b) -> {
            int kind = Boolean.compare(b.takesByte(), a.takesByte());
            return kind != 0 || !a.takesByte()
                ? kind
                : Integer.compare(a.label() & 0xFF, b.label() & 0xFF);
          });
      byteEdges[n] = count;
      int previousHigh = -1;
      for (Edge edge : node.edges) {
        labels[count] = edge.label();
        targets[count] = edge.target();
        calls[count++] = edge.call();
        if (edge.takesByte()) {
          if ((edge.label() & 0xFF) <= previousHigh) {
            throw new IllegalStateException("Two edges of node " + n + " take the same byte");
          }
          previousHigh = (edge.label() >> 8) & 0xFF;
          otherEdges[n] = count;
        }
      }
      otherEdges[n] = Math.max(otherEdges[n], byteEdges[n]);
      ends[n] = node.ends;
      plainLoops[n] = node.plainLoop;
      plainDepth[n] = node.plainDepth;
      uniform[n] = node.uniform;
      minimum[n] = node.min;
      maximum[n] = node.max;
      saturation[n] = node.max == UNBOUNDED ? node.min : UNBOUNDED;
    }
    first[size] = count;
    return new Grammar(
        start,
        first,
        otherEdges,
        Arrays.copyOf(labels, count),
        Arrays.copyOf(targets, count),
        Arrays.copyOf(calls, count),
        ends,
        plainLoops,
        plainDepth,
        uniform,
        minimum,
        maximum,
        saturation,
        minStack);
  }

  /** The grammar would get too large; whoever knows the path says so to the caller. */
  static final class TooLarge extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooLarge() {
      super("More than " + MAX_NODES + " nodes", null, false, false);
    }
  }
}
