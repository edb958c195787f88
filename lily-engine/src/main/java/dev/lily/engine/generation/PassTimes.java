package dev.lily.engine.generation;

/**
 * How long passes take, by the number of sessions that they write for: with one row for each, and
 * what a further row adds. Passes that also read prompts say nothing and are left out.
 */
final class PassTimes {
  /** Passes with drafts after which the time of those without counts as out of date. */
  static final int MAX_AGE = 32;

  /** Passes without drafts that have to be seen before any. */
  static final int MIN_PASSES = 4;

  /** Tokens that a row costs at least, whatever passes suggest while code is being compiled. */
  static final double MIN_ROW_COST = 0.1;

  /** Tokens that it costs at most, whatever passes that were held up suggest. */
  static final double MAX_ROW_COST = 1.5;

  private final RecentMedian[] plainNanos;
  private final RecentMedian[] rowCost;
  private int age;

  /**
   * @param maxSessions most sessions of a pass
   */
  PassTimes(int maxSessions) {
    plainNanos = new RecentMedian[maxSessions + 1];
    rowCost = new RecentMedian[maxSessions + 1];
    for (int sessions = 0; sessions <= maxSessions; sessions++) {
      plainNanos[sessions] = new RecentMedian();
      rowCost[sessions] = new RecentMedian();
      rowCost[sessions].add(1); // until more is known
    }
  }

  /**
   * A pass has run that read no prompt.
   *
   * @param sessions that it wrote for
   * @param furtherRows rows beyond one for each
   */
  void ran(int sessions, int furtherRows, long nanos) {
    RecentMedian plain = plainNanos[sessions];
    if (furtherRows == 0) {
      age = 0;
      plain.add((double) nanos);
      return;
    }
    age++;
    if (plain.value() > 0) {
      double token = plain.value() / sessions;
      double cost = ((double) nanos - plain.value()) / furtherRows / token;
      rowCost[sessions].add(Math.clamp(cost, MIN_ROW_COST, MAX_ROW_COST));
    }
  }

  /** Whether enough is known to draft in passes for so many sessions. */
  boolean isKnown(int sessions) {
    return plainNanos[sessions].size() >= MIN_PASSES && age < MAX_AGE;
  }

  /**
   * What a further row costs in a pass for so many sessions, in tokens: in the time that such a
   * pass takes without further rows, divided by its tokens. Before it was measured, a whole token.
   */
  double rowCost(int sessions) {
    return rowCost[sessions].value();
  }
}
