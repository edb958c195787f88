package dev.lily.engine.generation;

import java.util.Arrays;

/**
 * Guesses that what followed the last tokens earlier, in the prompt or in the answer so far,
 * follows again. Of the places that end alike it takes the one with the longest match, among equals
 * the latest.
 */
final class PromptLookup implements DraftSource {
  /** Fewer equal tokens than this are chance. */
  static final int MIN_MATCH = 3;

  /** A longer match is no better than one of this length. */
  static final int MAX_MATCH = 32;

  /** How far back it looks, so that a step costs microseconds in the longest context. */
  static final int REACH = 1 << 16;

  private int[] tokens;
  private int size;

  /**
   * @param prompt not kept
   */
  PromptLookup(int[] prompt) {
    tokens = Arrays.copyOf(prompt, prompt.length + 256);
    size = prompt.length;
  }

  @Override
  public void add(int token) {
    if (size == tokens.length) {
      tokens = Arrays.copyOf(tokens, size + size / 2);
    }
    tokens[size++] = token;
  }

  @Override
  public int draft(int[] target, int at, int most) {
    int from = next();
    if (from == size) {
      return 0;
    }
    int count = Math.min(most, size - from);
    System.arraycopy(tokens, from, target, at, count);
    return count;
  }

  /** Where the best match goes on; the end if there is none. */
  private int next() {
    int end = size - 1;
    int best = size;
    int longest = MIN_MATCH - 1;
    int last = size < MIN_MATCH ? -1 : tokens[end];
    for (int i = end - 1; i >= Math.max(MIN_MATCH - 1, end - REACH); i--) {
      if (tokens[i] == last && longest < MAX_MATCH) {
        int length = match(i, end);
        if (length > longest) {
          longest = length;
          best = i + 1;
        }
      }
    }
    return best;
  }

  /** How many tokens up to {@code i} equal those up to {@code end}. */
  private int match(int i, int end) {
    int length = 1;
    while (length < MAX_MATCH && length <= i && tokens[i - length] == tokens[end - length]) {
      length++;
    }
    return length;
  }
}
