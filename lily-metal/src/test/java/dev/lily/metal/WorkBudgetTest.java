package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class WorkBudgetTest {
  private static final Duration TENTH = Duration.ofMillis(100);

  private final WorkBudget budget = new WorkBudget(TENTH);

  @Test
  void startsWithTheSpeedOfNoGpuThatIsSlower() {
    assertThat(budget.operations()).isEqualTo(0.1 * WorkBudget.FIRST_SPEED);
    assertThat(budget.isSpent(0.99 * budget.operations())).isFalse();
    assertThat(budget.isSpent(budget.operations())).isTrue();
  }

  @Test
  void approachesTheMeasuredSpeed() {
    for (int i = 0; i < 40; i++) {
      double work = budget.operations();
      budget.measured(work, work / 4e12);
    }
    assertThat(budget.operations()).isCloseTo(0.1 * 4e12, within(1e9));
  }

  @Test
  void shrinksAtOnceWhenABufferTookTooLong() {
    budget.measured(0.1 * WorkBudget.FIRST_SPEED, 0.2);
    assertThat(budget.operations()).isEqualTo(0.05 * WorkBudget.FIRST_SPEED);
  }

  @Test
  void keepsALeastSizeHoweverLongABufferTook() {
    budget.measured(budget.operations(), 60);
    assertThat(budget.operations()).isEqualTo(0.1 * WorkBudget.LEAST_SPEED);
  }

  @Test
  void learnsNothingFromSmallBuffersAndFromClocksThatStandStill() {
    double before = budget.operations();
    budget.measured(before / 100, 1);
    budget.measured(before, 0);
    assertThat(budget.operations()).isEqualTo(before);
  }
}
