package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** How many rows of a prompt fit a time, with costs in milliseconds. */
class PrefillPacerTest {
  private static final Duration BOUND = Duration.ofMillis(250); // 200 ms of which are planned
  private static final int CHUNK = 256;

  private final PrefillPacer pacer = new PrefillPacer(BOUND);

  private static PassLoad load(int otherRows, int promptRows, int position, boolean isPaced) {
    PassLoad load = new PassLoad();
    load.begin(otherRows);
    if (promptRows > 0) {
      load.addPrompt(promptRows, position, isPaced);
    }
    return load;
  }

  private void measured(PassLoad load, double millis) {
    pacer.measured(load, Math.round(millis * 1e6));
  }

  private int rows(int otherRows, int position) {
    return pacer.rows(load(otherRows, 0, 0, false), position, CHUNK, 1);
  }

  /** Rows are 2 ms each, passes of one decode row 40 ms; slices as long as are ever taken. */
  private void learn() {
    measured(load(1, 0, 0, false), 40);
    for (int rows = 16; rows <= 256; rows *= 2) {
      measured(load(1, rows, 0, true), 40 + 2 * rows);
    }
  }

  @Test
  void startsWithFewRowsAndDoublesThemWhileThereIsTime() {
    assertThat(rows(1, 0)).isEqualTo(16);
    measured(load(1, 16, 0, true), 10);
    assertThat(rows(1, 0)).isEqualTo(32);
    measured(load(1, 32, 0, true), 12);
    assertThat(rows(1, 0)).isEqualTo(64);
  }

  @Test
  void fillsThePlannedPartOfTheTime() {
    learn();
    // 40 ms for the row that writes leave 160 ms, which is 80 rows of 2 ms.
    assertThat(rows(1, 0)).isBetween(79, 80);
  }

  @Test
  void leavesWhatIsTakenAlready() {
    learn();
    assertThat(pacer.rows(load(1, 30, 0, false), 0, CHUNK, 1)).isBetween(48, 50);
    assertThat(pacer.isFull(load(1, 79, 0, false), 1)).isFalse();
    assertThat(pacer.isFull(load(1, 81, 0, false), 1)).isTrue();
    assertThat(pacer.rows(load(1, 81, 0, false), 0, CHUNK, 1)).isEqualTo(1);
  }

  @Test
  void halvesTheTimeWhereEveryTokenTakesTwoPasses() {
    learn();
    // 100 ms less 40 ms: 30 rows.
    assertThat(pacer.rows(load(1, 0, 0, false), 0, CHUNK, 2)).isBetween(29, 30);
  }

  @Test
  void takesFewerRowsWhereTheyAttendToMore() {
    measured(load(1, 0, 0, false), 40);
    for (int i = 0; i < 300; i++) {
      int position = 1000 * (i % 33);
      // 2 ms a row, and 2 ms more behind each 8192 tokens.
      double row = 2 + 2 * (position + 16) / 8192.0;
      measured(load(1, 32, position, true), 40 + 32 * row);
    }
    assertThat(rows(1, 0)).isBetween(60, 80);
    assertThat(rows(1, 8192)).isBetween(36, 40);
    assertThat(rows(1, 3 * 8192)).isBetween(18, 20);
  }

  @Test
  void takesFewerAtOnceWhenTheDeviceSlowsDownAndMoreByAndByWhenItRecovers() {
    learn();
    measured(load(1, 80, 0, true), 40 + 4 * 80);
    assertThat(rows(1, 0)).isBetween(39, 40);
    measured(load(1, 40, 0, true), 40 + 2 * 40);
    assertThat(rows(1, 0)).isBetween(44, 46);
    for (int i = 0; i < 20; i++) {
      int rows = rows(1, 0);
      measured(load(1, rows, 0, true), 40 + 2 * rows);
    }
    assertThat(rows(1, 0)).isBetween(79, 80);
  }

  @Test
  void readsAFewRowsEvenIfThereIsNoTimeForThem() {
    measured(load(4, 0, 0, false), 900);
    assertThat(rows(4, 0)).isEqualTo(PrefillPacer.LEAST_ROWS);
    measured(load(4, 8, 0, true), 1000);
    assertThat(rows(4, 0)).isEqualTo(PrefillPacer.LEAST_ROWS);
    assertThat(pacer.rows(load(4, 6, 0, false), 0, CHUNK, 1)).isEqualTo(2);
    assertThat(pacer.isFull(load(4, 7, 0, false), 1)).isFalse();
    assertThat(pacer.isFull(load(4, 8, 0, false), 1)).isTrue();
    assertThat(pacer.rows(load(4, 0, 0, false), 0, 3, 1)).isEqualTo(3);
  }

  @Test
  void learnsNothingFromPassesInWhichNobodyWrites() {
    learn();
    measured(load(0, 256, 0, false), 100_000);
    assertThat(rows(1, 0)).isBetween(79, 80);
  }

  @Test
  void correctsWhatItExpectedOfManyWritersWhenItSeesThem() {
    // From one writer alone it cannot tell a fixed cost, which this is, from the cost of a row.
    measured(load(1, 0, 0, false), 100);
    for (int i = 0; i < 40; i++) {
      int rows = rows(8, 0);
      assertThat(100 + rows).as("step %d", i).isLessThan(250);
      measured(load(8, rows, 0, true), 100 + rows);
    }
    assertThat(rows(8, 0)).isBetween(80, 130);
  }

  @Test
  void doesNotTakeAPauseBeforeAPromptForTheCostOfWriting() {
    learn();
    for (int i = 0; i < 3; i++) {
      measured(load(1, 0, 0, false), 400);
    }
    for (int i = 0; i < 20; i++) {
      int rows = rows(1, 0);
      assertThat(40 + 2 * rows).as("step %d", i).isLessThan(250);
      measured(load(1, rows, 0, true), 40 + 2 * rows);
    }
    assertThat(rows(1, 0)).isBetween(75, 100);
  }

  @Test
  void aShortLastSliceDoesNotMakeTheNextPromptStartAnew() {
    learn();
    measured(load(1, 3, 0, false), 46);
    assertThat(rows(1, 0)).isBetween(79, 80);
  }

  @Test
  void aTimeWithoutEndIsNoLimit() {
    PrefillPacer free = new PrefillPacer(Duration.ofSeconds(Long.MAX_VALUE));
    for (int rows = 16; rows < CHUNK; rows *= 2) {
      assertThat(free.rows(load(1, 0, 0, false), 0, CHUNK, 1)).isEqualTo(rows);
      free.measured(load(1, rows, 0, true), 1_000_000_000_000L);
    }
    assertThat(free.rows(load(1, 0, 0, false), 0, CHUNK, 1)).isEqualTo(CHUNK);
  }
}
