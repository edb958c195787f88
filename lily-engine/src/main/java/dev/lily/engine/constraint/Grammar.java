package dev.lily.engine.constraint;

import java.util.concurrent.atomic.AtomicLong;

/**
 * A compiled constraint: a pushdown automaton over bytes. Nodes have edges that take a byte of a
 * range, edges that take nothing, and calls of other rules, which put the node to go on with on the
 * stack; a node that ends its rule takes it off again. Each rule in progress has one counter, which
 * edges may raise and compare with the node's bounds. Every node can reach the end of its rule.
 * Immutable and thread-safe.
 */
public final class Grammar {
  /** Most calls in progress. */
  static final int MAX_STACK = 256;

  /** First of the values that stand for whole tokens; no UTF-8 text has such bytes. */
  static final int FIRST_MARKER = 0xF8;

  // Edges: bits 0-7 low, 8-15 high, 16 raise, 17 below maximum, 18 at least minimum.
  static final int RAISE = 1 << 16;
  static final int BELOW_MAX = 1 << 17;
  static final int AT_LEAST_MIN = 1 << 18;
  static final int NO_CALL = -1;

  private static final AtomicLong IDS = new AtomicLong();

  final long id = IDS.incrementAndGet();
  final int start;

  /** Per node: first byte edge, first other edge, and the end of its edges. */
  final int[] byteEdges;

  final int[] otherEdges;

  /** Per edge. */
  final int[] labels;

  final int[] targets;

  /** Per edge: the start of the rule it calls, or {@link #NO_CALL}. */
  final int[] calls;

  /** Per node. */
  final boolean[] ends;

  /** Per node: every plain character leads back to it and raises the counter. */
  final boolean[] plainLoops;

  /** Per node: every text of so many plain characters or fewer can follow. */
  final int[] plainDepth;

  /** Per node: whether all counting nodes of its rule have its bounds. */
  final boolean[] uniform;

  final int[] minimum;
  final int[] maximum;

  /** Per node: where the counter stops counting because more makes no difference. */
  final int[] saturation;

  /** Per node: calls that have to be in progress at the same time to reach the rule's end. */
  final int[] minStack;

  Grammar(
      int start,
      int[] byteEdges,
      int[] otherEdges,
      int[] labels,
      int[] targets,
      int[] calls,
      boolean[] ends,
      boolean[] plainLoops,
      int[] plainDepth,
      boolean[] uniform,
      int[] minimum,
      int[] maximum,
      int[] saturation,
      int[] minStack) {
    this.start = start;
    this.byteEdges = byteEdges;
    this.otherEdges = otherEdges;
    this.labels = labels;
    this.targets = targets;
    this.calls = calls;
    this.ends = ends;
    this.plainLoops = plainLoops;
    this.plainDepth = plainDepth;
    this.uniform = uniform;
    this.minimum = minimum;
    this.maximum = maximum;
    this.saturation = saturation;
    this.minStack = minStack;
  }

  /**
   * Compiles a constraint.
   *
   * @throws InvalidConstraintException if it is wrong, contradicts itself or is not in the subset
   */
  public static Grammar compile(OutputConstraint constraint) {
    ConstraintCompiler compiler = new ConstraintCompiler();
    return compiler.grammar().build(compiler.rule(constraint));
  }

  /** Number of states of the automaton, without its stack. */
  public int numNodes() {
    return ends.length;
  }

  /** Bytes held. */
  public long bytes() {
    return (long) ends.length * (7 * Integer.BYTES + 3) + (long) labels.length * 3 * Integer.BYTES;
  }
}
