package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The texts in which none of some words occurs (Aho and Corasick's automaton). */
final class ForbiddenTexts implements ByteAutomaton {
  private final List<int[]> rows = new ArrayList<>();

  /**
   * @param words ASCII, none empty, none a part of another
   */
  ForbiddenTexts(List<String> words) {
    addRow();
    List<Boolean> whole = new ArrayList<>(List.of(false));
    for (String word : words) {
      int state = 0;
      for (byte b : word.getBytes(US_ASCII)) {
        if (rows.get(state)[b] == DEAD) {
          rows.get(state)[b] = addRow();
          whole.add(false);
        }
        state = rows.get(state)[b];
      }
      whole.set(state, true);
    }
    int[] fallback = new int[rows.size()];
    ArrayDeque<Integer> pending = new ArrayDeque<>();
    int[] root = rows.getFirst();
    for (int b = 0; b < 256; b++) {
      if (root[b] == DEAD) {
        root[b] = 0;
      } else {
        pending.add(root[b]);
      }
    }
    while (!pending.isEmpty()) {
      int state = pending.remove();
      int[] row = rows.get(state);
      int[] shorter = rows.get(fallback[state]);
      for (int b = 0; b < 256; b++) {
        if (row[b] == DEAD) {
          row[b] = shorter[b];
        } else {
          fallback[row[b]] = shorter[b];
          pending.add(row[b]);
        }
      }
    }
    for (int[] row : rows) {
      for (int b = 0; b < 256; b++) {
        row[b] = row[b] != DEAD && whole.get(row[b]) ? DEAD : row[b];
      }
    }
  }

  private int addRow() {
    int[] row = new int[256];
    Arrays.fill(row, DEAD);
    rows.add(row);
    return rows.size() - 1;
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
    return true;
  }
}
