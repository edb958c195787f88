package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

class CostEstimateTest {
  private static final Offset<Double> EXACT = within(1e-9);

  private final CostEstimate estimate = new CostEstimate(1, 0.25);

  @Test
  void expectsNothingBeforeItHasMeasured() {
    assertThat(estimate.of(3, 5)).isZero();
  }

  @Test
  void sharesAFirstMeasurementByTheAmounts() {
    // 50 over 3² + 4² is 2 for each amount: prices 6 and 8.
    estimate.measured(3, 4, 50);
    assertThat(estimate.of(1, 0)).isEqualTo(6, EXACT);
    assertThat(estimate.of(0, 1)).isEqualTo(8, EXACT);
    assertThat(estimate.of(3, 4)).isEqualTo(50, EXACT);
  }

  @Test
  void countsWhatCostMoreAtOnceAndWhatCostLessByAndBy() {
    estimate.measured(2, 0, 20);
    estimate.measured(2, 0, 30);
    assertThat(estimate.of(2, 0)).isEqualTo(30, EXACT);
    estimate.measured(2, 0, 10);
    assertThat(estimate.of(2, 0)).isEqualTo(25, EXACT);
    estimate.measured(2, 0, 10);
    assertThat(estimate.of(2, 0)).isEqualTo(21.25, EXACT);
  }

  @Test
  void canBeSlowInTheOtherDirection() {
    CostEstimate cautious = new CostEstimate(0.25, 1);
    cautious.measured(2, 0, 20);
    cautious.measured(2, 0, 30);
    assertThat(cautious.of(2, 0)).isEqualTo(22.5, EXACT);
    cautious.measured(2, 0, 10);
    assertThat(cautious.of(2, 0)).isEqualTo(10, EXACT);
  }

  @Test
  void believesNoMoreThanADoubling() {
    estimate.measured(1, 0, 10);
    estimate.measured(1, 0, 10_000);
    assertThat(estimate.of(1, 0)).isEqualTo(20, EXACT);
    estimate.measured(1, 0, 10_000);
    assertThat(estimate.of(1, 0)).isEqualTo(40, EXACT);
  }

  @Test
  void leavesThePriceOfWhatWasNotPartOfIt() {
    estimate.measured(3, 4, 50);
    estimate.measured(5, 0, 10);
    assertThat(estimate.of(0, 1)).isEqualTo(8, EXACT);
    estimate.measured(0, 0, 99);
    assertThat(estimate.of(0, 1)).isEqualTo(8, EXACT);
  }

  @Test
  void findsBothPricesFromDifferentAmounts() {
    for (int i = 0; i < 400; i++) {
      double first = 1 + i % 3;
      double second = 1 + i % 7;
      estimate.measured(first, second, 5 * first + 2 * second);
    }
    assertThat(estimate.of(1, 0)).isEqualTo(5, within(0.01));
    assertThat(estimate.of(0, 1)).isEqualTo(2, within(0.01));
  }

  @Test
  void neverPutsAPriceBelowZero() {
    estimate.measured(1, 0, 10);
    estimate.measured(0, 1, 1);
    for (int i = 0; i < 100; i++) {
      estimate.measured(1, 10, 0);
      assertThat(estimate.of(1, 0)).isNotNegative();
      assertThat(estimate.of(0, 1)).isNotNegative();
    }
  }
}
