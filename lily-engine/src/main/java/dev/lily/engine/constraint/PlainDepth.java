package dev.lily.engine.constraint;

import java.util.Arrays;

/**
 * How many plain characters (see {@link TokenVocabulary}) can follow in any combination. Where it
 * is many, whole sets of tokens are allowed without a look at each.
 */
final class PlainDepth {
  /** Larger automata are not looked at: they are narrow as a rule, and their tokens are few. */
  private static final int MAX_STATES = 4096;

  private final Dfa dfa;
  private final int[] depths;
  private final int[][] afterOne;

  private PlainDepth(Dfa dfa) {
    this.dfa = dfa;
    depths = new int[dfa.numStates()];
    afterOne = new int[4][dfa.numStates()];
  }

  /** By state: every text of so many plain characters or fewer leads to a live state. */
  static int[] of(Dfa dfa) {
    int[] none = new int[dfa.numStates()];
    if (dfa.numStates() > MAX_STATES) {
      return none;
    }
    PlainDepth search = new PlainDepth(dfa);
    boolean[] live = live(dfa);
    for (int s = 0; s < none.length; s++) {
      search.depths[s] = live[s] ? 0 : -1;
    }
    for (int length = 1; length <= TokenVocabulary.MAX_PLAIN_LENGTH; length++) {
      if (!search.extend(length)) {
        break;
      }
    }
    for (int s = 0; s < none.length; s++) {
      none[s] = Math.max(0, search.depths[s]);
    }
    return none;
  }

  /** Raises the states from which every plain character leads to one of depth length - 1. */
  private boolean extend(int length) {
    for (int[] row : afterOne) {
      Arrays.fill(row, -2);
    }
    int[] raised = depths.clone();
    boolean any = false;
    for (int s = 0; s < depths.length; s++) {
      if (depths[s] == length - 1 && allCharacters(s, length - 1)) {
        raised[s] = length;
        any = true;
      }
    }
    System.arraycopy(raised, 0, depths, 0, depths.length);
    return any;
  }

  private boolean allCharacters(int state, int needed) {
    for (int b = 0x20; b < 0x80; b++) {
      if (b != '"' && b != '\\' && !reaches(dfa.step(state, b), 0, needed)) {
        return false;
      }
    }
    return all(state, 0xC2, 0xDF, 1, needed)
        && allOf(dfa.step(state, 0xE0), 0xA0, 0xBF, 1, needed)
        && all(state, 0xE1, 0xE1, 2, needed)
        && lineSeparatorsAside(dfa.step(state, 0xE2), needed)
        && all(state, 0xE3, 0xEC, 2, needed)
        && allOf(dfa.step(state, 0xED), 0x80, 0x9F, 1, needed)
        && all(state, 0xEE, 0xEF, 2, needed)
        && allOf(dfa.step(state, 0xF0), 0x90, 0xBF, 2, needed)
        && all(state, 0xF1, 0xF3, 3, needed)
        && allOf(dfa.step(state, 0xF4), 0x80, 0x8F, 2, needed);
  }

  private boolean lineSeparatorsAside(int state, int needed) {
    if (state == ByteAutomaton.DEAD || !allOf(state, 0x81, 0xBF, 1, needed)) {
      return false;
    }
    int behind = dfa.step(state, 0x80);
    return allOf(behind, 0x80, 0xA7, 0, needed) && allOf(behind, 0xAA, 0xBF, 0, needed);
  }

  private boolean allOf(int state, int low, int high, int more, int needed) {
    return state != ByteAutomaton.DEAD && all(state, low, high, more, needed);
  }

  /**
   * Whether the bytes of a range, and any so many continuation bytes behind them, reach a state of
   * the depth needed.
   */
  private boolean all(int state, int low, int high, int more, int needed) {
    int previous = -2;
    for (int b = low; b <= high; b++) {
      int next = dfa.step(state, b);
      if (next != previous && !reaches(next, more, needed)) {
        return false;
      }
      previous = next;
    }
    return true;
  }

  private boolean reaches(int state, int more, int needed) {
    if (state == ByteAutomaton.DEAD) {
      return false;
    }
    if (more == 0) {
      return depths[state] >= needed;
    }
    if (afterOne[more][state] == -2) {
      afterOne[more][state] = all(state, 0x80, 0xBF, more - 1, needed) ? 1 : 0;
    }
    return afterOne[more][state] == 1;
  }

  /** States from which a text can be completed. */
  private static boolean[] live(Dfa dfa) {
    boolean[] live = new boolean[dfa.numStates()];
    boolean changed = true;
    while (changed) {
      changed = false;
      for (int s = live.length - 1; s >= 0; s--) {
        if (!live[s] && isLive(dfa, s, live)) {
          live[s] = true;
          changed = true;
        }
      }
    }
    return live;
  }

  private static boolean isLive(Dfa dfa, int state, boolean[] live) {
    if (dfa.accepts(state)) {
      return true;
    }
    for (int b = 0; b < 256; b++) {
      int next = dfa.step(state, b);
      if (next != ByteAutomaton.DEAD && live[next]) {
        return true;
      }
    }
    return false;
  }
}
