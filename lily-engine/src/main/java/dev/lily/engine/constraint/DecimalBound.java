package dev.lily.engine.constraint;

import java.math.BigDecimal;

/**
 * The decimal numbers, written without exponent and without needless zeros in front, that are at
 * least (or at most) a bound. Zero has no sign. What is not written so may be accepted too;
 * intersect with the format.
 */
final class DecimalBound implements ByteAutomaton {
  private static final int START = 0;
  private static final int FIRST = 1;

  private static final int LESS = 0;
  private static final int EQUAL = 1;
  private static final int GREATER = 2;

  private final boolean lower;
  private final boolean exclusive;
  private final int sign;
  private final String integer;
  private final String fraction;

  /** Digits read, comparison, and whether the point was read, for each sign. */
  private final int span;

  /**
   * @param lower whether the bound is the smallest number, not the largest
   * @param exclusive whether the bound itself is out
   */
  DecimalBound(BigDecimal bound, boolean lower, boolean exclusive) {
    this.lower = lower;
    this.exclusive = exclusive;
    sign = bound.signum();
    String plain = bound.abs().toPlainString();
    int point = plain.indexOf('.');
    integer = point < 0 ? plain : plain.substring(0, point);
    fraction = point < 0 ? "" : plain.substring(point + 1);
    span = integer.length() + fraction.length() + 3;
  }

  // A state is FIRST + ((negative * 2 + inFraction) * span + digits) * 3 + comparison.

  private int state(boolean negative, boolean inFraction, int digits, int comparison) {
    int part = (negative ? 2 : 0) + (inFraction ? 1 : 0);
    return FIRST + (part * span + digits) * 3 + comparison;
  }

  @Override
  public int start() {
    return START;
  }

  @Override
  public int step(int state, int b) {
    if (state == START) {
      return b == '-' ? state(true, false, 0, EQUAL) : digit(false, false, 0, EQUAL, b);
    }
    int rest = state - FIRST;
    int comparison = rest % 3;
    int digits = rest / 3 % span;
    int part = rest / 3 / span;
    boolean negative = part >= 2;
    boolean inFraction = part % 2 == 1;
    if (b == '.' && !inFraction) {
      return state(negative, true, 0, integerComparison(digits, comparison));
    }
    return digit(negative, inFraction, digits, comparison, b);
  }

  private int digit(boolean negative, boolean inFraction, int digits, int comparison, int b) {
    if (b < '0' || b > '9') {
      return DEAD;
    }
    String bound = inFraction ? fraction : integer;
    int next = comparison;
    if (comparison == EQUAL) {
      int expected = digits < bound.length() ? bound.charAt(digits) : '0';
      boolean beyondInteger = !inFraction && digits >= bound.length();
      next = beyondInteger ? GREATER : 1 + Integer.signum(b - expected);
    }
    int limit = inFraction ? fraction.length() : integer.length();
    return state(negative, inFraction, Math.min(digits + 1, limit + 1), next);
  }

  /** How the integer part compares when it is complete: more digits are more. */
  private int integerComparison(int digits, int comparison) {
    if (digits != integer.length()) {
      return digits < integer.length() ? LESS : GREATER;
    }
    return comparison;
  }

  @Override
  public boolean accepts(int state) {
    if (state == START) {
      return false;
    }
    int rest = state - FIRST;
    int comparison = rest % 3;
    int digits = rest / 3 % span;
    int part = rest / 3 / span;
    boolean negative = part >= 2;
    boolean inFraction = part % 2 == 1;
    if (!inFraction) {
      comparison = integerComparison(digits, comparison);
    }
    if (comparison == EQUAL && hasDigitsFrom(inFraction ? digits : 0)) {
      comparison = LESS;
    }
    return accepts(negative, comparison);
  }

  private boolean hasDigitsFrom(int digits) {
    for (int i = digits; i < fraction.length(); i++) {
      if (fraction.charAt(i) != '0') {
        return true;
      }
    }
    return false;
  }

  /** Compares the number itself, from how its magnitude compares with the bound's. */
  private boolean accepts(boolean negative, int magnitude) {
    int order;
    if (negative) {
      order = sign >= 0 ? -1 : EQUAL - magnitude;
    } else {
      order = sign < 0 ? 1 : magnitude - EQUAL;
    }
    if (order == 0) {
      return !exclusive;
    }
    return lower ? order > 0 : order < 0;
  }
}
