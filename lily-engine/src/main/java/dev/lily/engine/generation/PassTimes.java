package dev.lily.engine.generation;

import java.util.Arrays;

/**
 * How long passes take, by the number of sessions that they write for: with one row for each, and
 * what a further row adds. Passes that also read prompts say nothing and are left out. Moving
 * averages, in which an outlier counts for little.
 */
final class PassTimes {
  /** Passes with drafts after which the time of those without counts as out of date. */
  static final int MAX_AGE = 64;

  /** Passes without drafts that have to be seen before any. */
  static final int MIN_PASSES = 3;

  /** More tokens than this no row costs, whatever a pass that was held up suggests. */
  static final double MAX_ROW_COST = 1.5;

  private static final int WINDOW = 8;

  private final double[] plainNanos;
  private final int[] numPlain;
  private final double[] rowCost;
  private final int[] numMeasured;
  private int age;

  /**
   * @param maxSessions most sessions of a pass
   */
  PassTimes(int maxSessions) {
    plainNanos = new double[maxSessions + 1];
    numPlain = new int[maxSessions + 1];
    rowCost = new double[maxSessions + 1];
    numMeasured = new int[maxSessions + 1];
    Arrays.fill(rowCost, 1);
    Arrays.fill(numMeasured, 1);
  }

  /**
   * A pass has run that read no prompt.
   *
   * @param sessions that it wrote for
   * @param furtherRows rows beyond one for each
   */
  void ran(int sessions, int furtherRows, long nanos) {
    double time = (double) nanos;
    if (furtherRows == 0) {
      age = 0;
      numPlain[sessions] = Math.min(WINDOW, numPlain[sessions] + 1);
      boolean isNew = numPlain[sessions] <= MIN_PASSES;
      double counted = isNew ? time : Math.min(time, 2 * plainNanos[sessions]);
      plainNanos[sessions] += (counted - plainNanos[sessions]) / numPlain[sessions];
      return;
    }
    age++;
    if (plainNanos[sessions] > 0) {
      double token = plainNanos[sessions] / sessions;
      double cost = (time - plainNanos[sessions]) / furtherRows / token;
      numMeasured[sessions] = Math.min(WINDOW, numMeasured[sessions] + 1);
      rowCost[sessions] +=
          (Math.clamp(cost, 0, MAX_ROW_COST) - rowCost[sessions]) / numMeasured[sessions];
    }
  }

  /** Whether enough is known to draft in passes for so many sessions. */
  boolean isKnown(int sessions) {
    return numPlain[sessions] >= MIN_PASSES && age < MAX_AGE;
  }

  /**
   * What a further row costs in a pass for so many sessions, in tokens: in the time that such a
   * pass takes without further rows, divided by its tokens. Before it was measured, a whole token.
   */
  double rowCost(int sessions) {
    return rowCost[sessions];
  }
}
