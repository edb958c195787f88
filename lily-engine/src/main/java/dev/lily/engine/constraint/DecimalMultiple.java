package dev.lily.engine.constraint;

import java.math.BigDecimal;
import java.math.BigInteger;

/**
 * The decimal numbers, written without exponent, that are a multiple of a step. They have at most
 * as many digits behind the point as the step.
 */
final class DecimalMultiple implements ByteAutomaton {
  /** Largest number of residues. */
  static final int MAX_RESIDUES = 1000;

  private final int modulus;
  private final int scale;

  /**
   * @throws IllegalArgumentException if the step is not positive or has too many residues
   */
  DecimalMultiple(BigDecimal step) {
    BigDecimal plain = step.stripTrailingZeros();
    BigInteger residues =
        plain.scale() >= 0 ? plain.unscaledValue() : plain.setScale(0).unscaledValue();
    if (residues.signum() <= 0 || residues.bitLength() > 10 || residues.intValue() > MAX_RESIDUES) {
      throw new IllegalArgumentException(
          "it must be positive, and its digits without the point at most " + MAX_RESIDUES);
    }
    modulus = residues.intValue();
    scale = Math.max(0, plain.scale());
  }

  // A state is (residue * (scale + 2) + digits behind the point + 1); 0 digits mean no point yet.

  @Override
  public int start() {
    return 0;
  }

  @Override
  public int step(int state, int b) {
    int behind = state % (scale + 2);
    int residue = state / (scale + 2);
    if (b == '-') {
      return state;
    }
    if (b == '.') {
      return behind == 0 && scale > 0 ? residue * (scale + 2) + 1 : DEAD;
    }
    if (b < '0' || b > '9' || behind == scale + 1) {
      return DEAD;
    }
    int next = (residue * 10 + b - '0') % modulus;
    return next * (scale + 2) + (behind == 0 ? 0 : behind + 1);
  }

  @Override
  public boolean accepts(int state) {
    int behind = Math.max(0, state % (scale + 2) - 1);
    long residue = state / (scale + 2);
    for (int i = behind; i < scale; i++) {
      residue = residue * 10 % modulus;
    }
    return residue == 0;
  }
}
