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
    plain(1, 3, 100);
    assertThat(times.rowCost(1)).isEqualTo(1);
    times.ran(1, 4, 300); // half a token a row; the guess counts as one measurement
    assertThat(times.rowCost(1)).isEqualTo(0.75, within(1e-9));
    times.ran(1, 2, 200);
    assertThat(times.rowCost(1)).isEqualTo((1 + 0.5 + 0.5) / 3, within(1e-9));
  }

  @Test
  void comesToWhatIsMeasured() {
    plain(1, 3, 100);
    for (int i = 0; i < 60; i++) {
      times.ran(1, 8, 260);
    }
    assertThat(times.rowCost(1)).isEqualTo(0.2, within(0.001));
    for (int i = 0; i < 60; i++) {
      times.ran(1, 8, 900);
    }
    assertThat(times.rowCost(1)).isEqualTo(1, within(0.001));
  }

  @Test
  void countsInTokensOfAPassForSoManySessions() {
    plain(4, 3, 200);
    for (int i = 0; i < 60; i++) {
      times.ran(4, 2, 250);
    }
    assertThat(times.rowCost(4)).as("25 of the 50 that a token takes").isEqualTo(0.5, within(0.01));
    assertThat(times.rowCost(1)).isEqualTo(1);
  }

  @Test
  void letsOnePassThatWasHeldUpCountForLittle() {
    plain(1, 8, 100);
    times.ran(1, 0, 1_000_000);
    for (int i = 0; i < 60; i++) {
      times.ran(1, 1, 150);
    }
    // The average rose by an eighth to 112.5, so that a row seems to cost 37.5 of that.
    assertThat(times.rowCost(1)).isEqualTo(37.5 / 112.5, within(0.01));
    times.ran(1, 1, 1_000_000);
    assertThat(times.rowCost(1))
        .isEqualTo(1.0 / 3 + (PassTimes.MAX_ROW_COST - 1.0 / 3) / 8, within(0.01));
  }

  @Test
  void asksForAPassWithoutDraftsNowAndThen() {
    plain(1, 3, 100);
    for (int i = 0; i < PassTimes.MAX_AGE; i++) {
      assertThat(times.isKnown(1)).isTrue();
      times.ran(1, 1, 150);
    }
    assertThat(times.isKnown(1)).isFalse();
    plain(1, 1, 100);
    assertThat(times.isKnown(1)).isTrue();
  }
}
