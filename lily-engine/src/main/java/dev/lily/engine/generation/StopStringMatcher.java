package dev.lily.engine.generation;

import java.util.Arrays;
import java.util.List;

/**
 * Looks for stop strings in text that comes in pieces, however cut. The text ends right before the
 * match that is complete first; of several complete at the same character the longest counts. Only
 * a suffix that may still become a match is held back. One Knuth-Morris-Pratt automaton per string,
 * so the work per character does not depend on what was held. Not thread-safe.
 */
final class StopStringMatcher {
  private final String[] stops;
  private final int[][] fallback;
  private final int[] progress;
  private String held = "";
  private boolean matched;

  /**
   * @param stops no empty ones
   */
  StopStringMatcher(List<String> stops) {
    this.stops = stops.toArray(String[]::new);
    progress = new int[this.stops.length];
    fallback = new int[this.stops.length][];
    for (int s = 0; s < fallback.length; s++) {
      fallback[s] = fallback(this.stops[s]);
    }
  }

  /** For each number of matched characters: how many still match after the next one did not. */
  private static int[] fallback(String stop) {
    int[] table = new int[stop.length()];
    int matching = 0;
    for (int i = 1; i < stop.length(); i++) {
      table[i] = matching;
      while (matching > 0 && stop.charAt(i) != stop.charAt(matching)) {
        matching = table[matching];
      }
      if (stop.charAt(i) == stop.charAt(matching)) {
        matching++;
      }
    }
    return table;
  }

  /** Takes the next piece and returns what can be sent; nothing more after a match. */
  String accept(String piece) {
    if (matched) {
      return "";
    }
    for (int i = 0; i < piece.length(); i++) {
      int length = longestEndingWith(piece.charAt(i));
      if (length > 0) {
        matched = true;
        String text = held + piece.substring(0, i + 1);
        held = "";
        return text.substring(0, text.length() - length);
      }
    }
    String text = held.isEmpty() ? piece : held + piece;
    int free = text.length() - longestProgress();
    held = text.substring(free);
    return text.substring(0, free);
  }

  private int longestEndingWith(char next) {
    int longest = 0;
    for (int s = 0; s < stops.length; s++) {
      String stop = stops[s];
      int matching = progress[s];
      while (matching > 0 && stop.charAt(matching) != next) {
        matching = fallback[s][matching];
      }
      if (stop.charAt(matching) == next) {
        matching++;
      }
      progress[s] = matching;
      if (matching == stop.length()) {
        longest = Math.max(longest, matching);
      }
    }
    return longest;
  }

  private int longestProgress() {
    int longest = 0;
    for (int matching : progress) {
      longest = Math.max(longest, matching);
    }
    return longest;
  }

  /** Whether a stop string came. */
  boolean matched() {
    return matched;
  }

  /** Returns what was held back and starts afresh; a match does not reach over this point. */
  String release() {
    String text = held;
    held = "";
    Arrays.fill(progress, 0);
    return text;
  }
}
