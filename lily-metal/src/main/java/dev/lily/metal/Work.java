package dev.lily.metal;

import dev.lily.engine.backend.AttentionOperands;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.GatedDeltaOperands;

/**
 * Rough numbers of floating-point operations, to judge how long a command buffer will take: pure
 * functions of the shapes.
 */
final class Work {
  private Work() {}

  /** Rows times a matrix. */
  static double product(int rows, int outputs, int columns) {
    return 2.0 * rows * outputs * columns;
  }

  /** The scan: decay, two products with the state and its update. */
  static double gatedDelta(int rows, GatedDeltaOperands o) {
    return 8.0 * rows * o.numValueHeads() * o.keyDim() * o.valueDim();
  }

  /**
   * Scores and weighted sums.
   *
   * @param attended tokens that the rows attend to, all rows together
   */
  static double attend(long attended, AttentionOperands o) {
    return 4.0 * attended * o.numHeads() * o.headDim();
  }

  /** The chosen experts and the shared one, three matrices each. */
  static double experts(int rows, ExpertsOperands o) {
    double intermediate = (double) o.numExpertsPerToken() * o.gate().rows() + o.sharedGate().rows();
    return 6.0 * rows * o.n().columns() * intermediate;
  }
}
