package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A deterministic automaton over bytes as a table. Immutable. */
final class Dfa implements ByteAutomaton {
  /** Most states; a row takes one KiB. */
  static final int MAX_STATES = 8192;

  private final List<int[]> rows;
  private final BitSet accepting;

  /**
   * @param rows the next state or {@link #DEAD} for each of 256 bytes; state 0 is the start. Handed
   *     over
   * @param accepting handed over
   */
  Dfa(List<int[]> rows, BitSet accepting) {
    this.rows = rows;
    this.accepting = accepting;
  }

  int numStates() {
    return rows.size();
  }

  /** Whether no text is accepted; true only if no reachable state accepts. */
  boolean isEmpty() {
    return accepting.isEmpty();
  }

  @Override
  public int start() {
    return 0;
  }

  @Override
  public int step(int state, int unsignedByte) {
    return rows.get(state)[unsignedByte];
  }

  @Override
  public boolean accepts(int state) {
    return accepting.get(state);
  }

  /**
   * What all automata accept.
   *
   * @throws TooManyStates beyond {@link #MAX_STATES}
   */
  static Dfa intersection(ByteAutomaton... automata) {
    return explore(automata, 0);
  }

  /**
   * What the first automaton accepts and the second does not.
   *
   * @throws TooManyStates beyond {@link #MAX_STATES}
   */
  static Dfa difference(ByteAutomaton all, ByteAutomaton without) {
    return explore(new ByteAutomaton[] {all, without}, 1);
  }

  /**
   * @param negated how many of the last automata must not accept
   */
  private static Dfa explore(ByteAutomaton[] automata, int negated) {
    int required = automata.length - negated;
    Map<Key, Integer> ids = new HashMap<>();
    List<int[]> tuples = new ArrayList<>();
    List<int[]> rows = new ArrayList<>();
    BitSet accepting = new BitSet();
    int[] start = new int[automata.length];
    for (int i = 0; i < start.length; i++) {
      start[i] = automata[i].start();
    }
    ids.put(new Key(start), 0);
    tuples.add(start);
    for (int state = 0; state < tuples.size(); state++) {
      int[] tuple = tuples.get(state);
      int[] row = new int[256];
      Arrays.fill(row, DEAD);
      rows.add(row);
      if (accepts(automata, required, tuple)) {
        accepting.set(state);
      }
      for (int b = 0; b < 256; b++) {
        int[] next = step(automata, required, tuple, b);
        if (next.length > 0) {
          Integer id = ids.putIfAbsent(new Key(next), tuples.size());
          if (id == null) {
            id = tuples.size();
            tuples.add(next);
            requireFewer(tuples.size());
          }
          row[b] = id;
        }
      }
    }
    return new Dfa(rows, accepting);
  }

  private static boolean accepts(ByteAutomaton[] automata, int required, int[] tuple) {
    for (int i = 0; i < automata.length; i++) {
      if ((tuple[i] != DEAD && automata[i].accepts(tuple[i])) != i < required) {
        return false;
      }
    }
    return true;
  }

  private static int[] step(ByteAutomaton[] automata, int required, int[] tuple, int b) {
    int[] next = new int[tuple.length];
    for (int i = 0; i < next.length; i++) {
      next[i] = tuple[i] == DEAD ? DEAD : automata[i].step(tuple[i], b);
      if (next[i] == DEAD && i < required) {
        return new int[0];
      }
    }
    return next;
  }

  static void requireFewer(int states) {
    if (states > MAX_STATES) {
      throw new TooManyStates();
    }
  }

  private static final class Key {
    private final int[] states;
    private final int hash;

    Key(int[] states) {
      this.states = states;
      hash = Arrays.hashCode(states);
    }

    @Override
    public int hashCode() {
      return hash;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Key that && Arrays.equals(states, that.states);
    }
  }

  /** An automaton would get too large; whoever knows the path says so to the caller. */
  static final class TooManyStates extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TooManyStates() {
      super("More than " + MAX_STATES + " states", null, false, false);
    }
  }
}
