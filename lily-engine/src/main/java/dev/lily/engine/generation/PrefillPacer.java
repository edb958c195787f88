package dev.lily.engine.generation;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sizes the slices of prompts in passes in which others write, so that such a pass is expected to
 * stay within a time: that time is the gap in a running stream. Learns from the passes that have
 * run what rows cost, whatever the device. Nanoseconds everywhere. Engine thread only.
 *
 * <p>A pass costs a fixed part, a part for each row of sessions that write, and a part for each row
 * of prompts that grows with the tokens before it. In doubt a cost counts as the prompt's, which
 * makes slices shorter: prices of prompts rise at once and fall by and by, those of writing the
 * other way round. A slice is at most twice as long as the one before, since a price learnt from
 * few rows says little of many.
 */
final class PrefillPacer {
  private static final Logger log = LoggerFactory.getLogger(PrefillPacer.class);

  /** Rows that prompts get in any pass, so that they come to an end. */
  static final int LEAST_ROWS = 8;

  /** Share of the time that is planned: what rows cost varies, and so does the machine. */
  static final double PLANNED_SHARE = 0.8;

  /** Rows that write which are taken to cost about as much as a pass does without them. */
  private static final double WRITING_UNIT = 8;

  private static final double AT_ONCE = 1;
  private static final double SLOWLY = 0.25;

  /** Tokens before a row for whose attention it is taken to cost about as much again. */
  private static final double ATTENDED_UNIT = 8192;

  private final Duration maxStepTime;
  private final double plannedNanos;
  private final CostEstimate writing = new CostEstimate(SLOWLY, AT_ONCE);
  private final CostEstimate reading = new CostEstimate(AT_ONCE, SLOWLY);
  private int reach = 2 * LEAST_ROWS;
  private boolean hasWarned;

  /**
   * @param maxStepTime what a pass may take in which others write
   */
  PrefillPacer(Duration maxStepTime) {
    this.maxStepTime = maxStepTime;
    plannedNanos = PLANNED_SHARE * Nanos.of(maxStepTime);
  }

  /** Whether the rows of prompts that a pass has take all the time there is. */
  boolean isFull(PassLoad load, int passesPerToken) {
    return load.promptRows() >= LEAST_ROWS && taken(load) >= plannedNanos / passesPerToken;
  }

  private double taken(PassLoad load) {
    return writing(load) + reading.of(load.promptRows(), load.attended() / ATTENDED_UNIT);
  }

  /**
   * How many rows of a prompt may join a pass in which others write.
   *
   * @param load what the pass has already
   * @param position of the first row
   * @param most rows that there is room for
   * @param passesPerToken passes that lie between two tokens of a stream
   * @return at least 1, and {@value #LEAST_ROWS} with those that the pass has, if there is room
   */
  int rows(PassLoad load, int position, int most, int passesPerToken) {
    double planned = plannedNanos / passesPerToken;
    double taken = taken(load);
    int longest = Math.min(most, reach);
    double perRow = reading.of(1, (position + longest / 2.0) / ATTENDED_UNIT);
    int least = Math.min(most, Math.max(1, LEAST_ROWS - load.promptRows()));
    int affordable =
        taken + longest * perRow <= planned ? longest : (int) ((planned - taken) / perRow);
    if (affordable < least) {
      warnIfLong(load, passesPerToken * (taken + least * perRow));
      return least;
    }
    return affordable;
  }

  private void warnIfLong(PassLoad load, double nanos) {
    if (!hasWarned && nanos > Nanos.of(maxStepTime)) {
      hasWarned = true;
      log.warn(
          "Reading {} prompt tokens at a time while {} answers are written makes these pause for about {} ms, longer than lily.max-step-time ({} ms). Raise it, or lower lily.max-sessions",
          LEAST_ROWS,
          load.otherRows(),
          Math.round(nanos / 1e6),
          maxStepTime.toMillis());
    }
  }

  /**
   * Takes account of a pass that has run. One in which nobody writes says nothing: rows cost less
   * in the long slices that it has.
   *
   * @param nanos from its start, or the end of the pass before it if that was later, to its end
   */
  void measured(PassLoad load, long nanos) {
    if (load.otherRows() == 0) {
      return;
    }
    double others = writing(load);
    if (load.promptRows() == 0 || nanos <= others) {
      writing.measured(1, load.otherRows() / WRITING_UNIT, (double) nanos);
    }
    if (load.promptRows() > 0) {
      if (nanos > others) {
        reading.measured(load.promptRows(), load.attended() / ATTENDED_UNIT, nanos - others);
      }
      int next = 2 * load.promptRows();
      reach = load.isPaced() ? next : Math.max(reach, next);
    }
  }

  private double writing(PassLoad load) {
    return writing.of(1, load.otherRows() / WRITING_UNIT);
  }
}
