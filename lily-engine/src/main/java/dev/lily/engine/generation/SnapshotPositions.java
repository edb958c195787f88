package dev.lily.engine.generation;

import java.util.Arrays;

/**
 * Where the state of a prompt is worth keeping: at the tokens where a later prompt may leave it.
 * Immutable.
 */
final class SnapshotPositions {
  /** Messages counted from the end whose beginnings are kept. */
  private static final int LAST_MESSAGES = 4;

  /** A prompt with a message that begins so near its end needs no other snapshot there. */
  private static final int NEAR_END = 32;

  private final int messageStart;
  private final int interval;

  /**
   * @param messageStart the token that begins every message; -1 if there is none
   * @param interval tokens between further positions; 0 for none
   */
  SnapshotPositions(int messageStart, int interval) {
    this.messageStart = messageStart;
    this.interval = interval;
  }

  /**
   * The positions of a prompt: the end of its first message, the beginnings of its last ones, the
   * multiples of the interval, and the place before the last token if no message begins near it. At
   * all of them one token at least is left to be read.
   *
   * @return ascending, each above 0 and below the prompt's length
   */
  int[] of(int[] prompt) {
    boolean[] kept = new boolean[prompt.length];
    int messages = 0;
    int first = 0;
    for (int p = prompt.length - 1; p > 0; p--) {
      if (prompt[p] == messageStart) {
        first = p;
        kept[p] = messages++ < LAST_MESSAGES;
      }
      if (interval > 0 && p % interval == 0) {
        kept[p] = true;
      }
    }
    kept[first] = first > 0;
    boolean messageNearEnd = false;
    for (int p = Math.max(1, prompt.length - NEAR_END); p < prompt.length; p++) {
      messageNearEnd |= prompt[p] == messageStart;
    }
    if (!messageNearEnd && prompt.length > 1) {
      kept[prompt.length - 1] = true;
    }
    return positions(kept);
  }

  /** Whether the first message of a prompt, such as its system prompt, ends at a position. */
  boolean isFirstMessageEnd(int[] tokens, int position) {
    if (position >= tokens.length || tokens[position] != messageStart) {
      return false;
    }
    for (int p = 1; p < position; p++) {
      if (tokens[p] == messageStart) {
        return false;
      }
    }
    return true;
  }

  private static int[] positions(boolean[] kept) {
    int[] positions = new int[kept.length];
    int size = 0;
    for (int p = 0; p < kept.length; p++) {
      if (kept[p]) {
        positions[size++] = p;
      }
    }
    return Arrays.copyOf(positions, size);
  }
}
