package dev.lily.engine.generation;

/**
 * How long passes take: those that write one token for each of some sessions, and what further rows
 * add. Passes that also read prompts say nothing and are left out. Moving averages, in which an
 * outlier counts as twice the average at most, in nanoseconds.
 */
final class PassTimes {
  /** Passes after which the time of those without drafts counts as out of date. */
  static final int MAX_AGE = 64;

  /** Passes that have to be seen before an average is used. */
  static final int MIN_PASSES = 3;

  private static final int WINDOW = 8;

  /** More tokens than this no row costs, whatever a pass that was held up suggests. */
  private static final double MAX_ROW_COST = 2;

  private final double[] plain;
  private final int[] numPlain;
  private double row;
  private int numRows;
  private int age;

  /**
   * @param maxSessions most sessions of a pass
   */
  PassTimes(int maxSessions) {
    plain = new double[maxSessions + 1];
    numPlain = new int[maxSessions + 1];
  }

  /**
   * A pass has run that read no prompt.
   *
   * @param sessions that it wrote for
   * @param furtherRows rows beyond one for each
   */
  void ran(int sessions, int furtherRows, long nanos) {
    if (furtherRows == 0) {
      age = 0;
      numPlain[sessions] = Math.min(WINDOW, numPlain[sessions] + 1);
      plain[sessions] = average(plain[sessions], (double) nanos, numPlain[sessions]);
      return;
    }
    age++;
    if (numPlain[sessions] >= MIN_PASSES) {
      numRows = Math.min(WINDOW, numRows + 1);
      double most = MAX_ROW_COST * plain[sessions] / sessions;
      double more = Math.clamp(((double) nanos - plain[sessions]) / furtherRows, 0, most);
      row = average(row, more, numRows);
    }
  }

  private static double average(double average, double value, int count) {
    double counted = count <= MIN_PASSES ? value : Math.min(value, 2 * average);
    return average + (counted - average) / count;
  }

  /** Whether enough is known to judge drafts in passes for so many sessions. */
  boolean isKnown(int sessions) {
    return numPlain[sessions] >= MIN_PASSES && plain[sessions] > 0 && age < MAX_AGE;
  }

  /**
   * What a further row costs in a pass for so many sessions, in tokens: in the time of such a pass
   * without further rows, divided by its tokens. Before anything was measured, a whole token.
   */
  double rowCost(int sessions) {
    return numRows == 0 || plain[sessions] == 0 ? 1 : row * sessions / plain[sessions];
  }
}
