package dev.lily.engine.generation;

/**
 * A cost that is the sum of two amounts, each times a price, learnt from what was paid. Prices are
 * never negative. One measurement at most doubles the expectation, so that a pause of the machine
 * is not taken for a price.
 */
final class CostEstimate {
  private static final double MOST_GROWTH = 2;

  private final double gainUp;
  private final double gainDown;
  private double firstPrice;
  private double secondPrice;

  /**
   * @param gainUp share of a cost beyond what was expected that counts at once, 0 to 1
   * @param gainDown the same for one below it
   */
  CostEstimate(double gainUp, double gainDown) {
    this.gainUp = gainUp;
    this.gainDown = gainDown;
  }

  /** What amounts are expected to cost; 0 before anything was measured. */
  double of(double first, double second) {
    return first * firstPrice + second * secondPrice;
  }

  /**
   * Takes account of a measurement: prices move along the amounts, the larger one's most, so that
   * those that were not part of it stay.
   */
  void measured(double first, double second, double cost) {
    double square = first * first + second * second;
    if (square == 0) {
      return;
    }
    double expected = of(first, second);
    double step;
    if (expected == 0) {
      step = cost / square;
    } else {
      double error = Math.min(cost, MOST_GROWTH * expected) - expected;
      step = (error > 0 ? gainUp : gainDown) * error / square;
    }
    firstPrice = Math.max(0, firstPrice + step * first);
    secondPrice = Math.max(0, secondPrice + step * second);
  }
}
