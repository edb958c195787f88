package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class PassTimesTest {
  private final PassTimes times = new PassTimes(4);

  private void plain(int sessions, int passes, long nanos) {
    for (int i = 0; i < passes; i++) {
      times.ran(sessions, 0, nanos);
    }
  }

  private void drafting(int sessions, int furtherRows, int passes, long nanos) {
    for (int i = 0; i < passes; i++) {
      times.ran(sessions, furtherRows, nanos);
    }
  }

  @Test
  void knowsNothingBeforeAFewPassesWithoutDrafts() {
    plain(1, PassTimes.MIN_PASSES - 1, 100);
    assertThat(times.isKnown(1)).isFalse();
    plain(1, 1, 100);
    assertThat(times.isKnown(1)).isTrue();
    assertThat(times.isKnown(2)).as("of each number of sessions apart").isFalse();
  }

  @Test
  void takesARowForATokenUntilItWasMeasured() {
    plain(1, 4, 100);
    assertThat(times.rowCost(1)).isEqualTo(1);
    drafting(1, 4, 1, 300);
    assertThat(times.rowCost(1)).as("half a token, and the guess").isEqualTo(0.75, within(1e-9));
    drafting(1, 2, 1, 200);
    assertThat(times.rowCost(1)).isEqualTo(0.5, within(1e-9));
  }

  @Test
  void followsWhatIsMeasured() {
    plain(1, 4, 100);
    drafting(1, 8, 8, 260);
    assertThat(times.rowCost(1)).isEqualTo(0.2, within(1e-9));
    drafting(1, 8, 8, 900);
    assertThat(times.rowCost(1)).isEqualTo(1, within(1e-9));
    plain(1, 8, 200);
    drafting(1, 8, 8, 900);
    assertThat(times.rowCost(1)).isEqualTo(7.0 / 16, within(1e-9));
  }

  @Test
  void takesNoRowForFreeAndNoneForMoreThanItCanCost() {
    plain(1, 4, 100);
    drafting(1, 8, 8, 90);
    assertThat(times.rowCost(1)).isEqualTo(PassTimes.MIN_ROW_COST);
    drafting(1, 8, 8, 90_000);
    assertThat(times.rowCost(1)).isEqualTo(PassTimes.MAX_ROW_COST);
  }

  @Test
  void countsInTokensOfAPassForSoManySessions() {
    plain(4, 4, 200);
    drafting(4, 2, 8, 250);
    assertThat(times.rowCost(4)).as("25 of the 50 that a token takes").isEqualTo(0.5, within(1e-9));
    assertThat(times.rowCost(1)).isEqualTo(1);
  }

  @Test
  void ignoresPassesThatWereHeldUp() {
    plain(1, 8, 100);
    plain(1, 3, 1_000_000);
    drafting(1, 1, 8, 150);
    drafting(1, 1, 3, 1_000_000);
    assertThat(times.rowCost(1)).isEqualTo(0.5, within(1e-9));
  }

  @Test
  void asksForAPassWithoutDraftsNowAndThen() {
    plain(1, 4, 100);
    for (int i = 0; i < PassTimes.MAX_AGE; i++) {
      assertThat(times.isKnown(1)).isTrue();
      drafting(1, 1, 1, 150);
    }
    assertThat(times.isKnown(1)).isFalse();
    plain(1, 1, 100);
    assertThat(times.isKnown(1)).isTrue();
  }

  @Test
  void theMedianIsOfTheLastEight() {
    RecentMedian median = new RecentMedian();
    assertThat(median.value()).isNaN();
    for (int i = 1; i <= 100; i++) {
      median.add(i);
      int from = Math.max(1, i - 7);
      assertThat(median.size()).isEqualTo(i - from + 1);
      assertThat(median.value()).isEqualTo((from + i) / 2.0);
    }
  }
}
