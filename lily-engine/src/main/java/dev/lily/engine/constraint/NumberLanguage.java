package dev.lily.engine.constraint;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * JSON numbers within bounds. How long a number gets is limited, so that every one fits the types
 * programs read it into and none goes on for ever.
 */
final class NumberLanguage {
  /** Digits of an integer without bounds; each such fits a {@code long}. */
  static final int INTEGER_DIGITS = 18;

  /** Digits behind the point. */
  static final int FRACTION_DIGITS = 17;

  private static final int MAX_BOUND_DIGITS = 64;

  private static final Dfa ANY_INTEGER = regex("-?(0|[1-9]\\d{0,17})");
  private static final Dfa ANY_NUMBER =
      regex("-?(0|[1-9]\\d{0,17})(\\.\\d{1,17})?([eE][+\\-]?\\d{1,2})?");

  private NumberLanguage() {}

  /**
   * A bound.
   *
   * @param path of the keyword
   */
  record Bound(BigDecimal value, boolean exclusive, String path) {}

  /** Integers without bounds. */
  static Dfa anyInteger() {
    return ANY_INTEGER;
  }

  /** Numbers without bounds. */
  static Dfa anyNumber() {
    return ANY_NUMBER;
  }

  /**
   * Numbers within bounds.
   *
   * @param path of the schema, for a refusal if there is none
   * @param multipleOf the step
   * @throws InvalidConstraintException if there is none, or the bounds are too long to compare with
   */
  static Dfa of(
      boolean integer,
      List<Bound> lower,
      List<Bound> upper,
      @Nullable Bound multipleOf,
      String path) {
    if (lower.isEmpty() && upper.isEmpty() && multipleOf == null) {
      return integer ? ANY_INTEGER : ANY_NUMBER;
    }
    int integerDigits = INTEGER_DIGITS;
    int fractionDigits = FRACTION_DIGITS;
    List<ByteAutomaton> automata = new ArrayList<>();
    for (int side = 0; side < 2; side++) {
      for (Bound bound : side == 0 ? lower : upper) {
        integerDigits = Math.max(integerDigits, integerDigits(bound) + 1);
        fractionDigits = Math.max(fractionDigits, bound.value().scale() + 1);
        automata.add(new DecimalBound(bound.value(), side == 0, bound.exclusive()));
      }
    }
    if (multipleOf != null) {
      try {
        automata.add(new DecimalMultiple(multipleOf.value()));
      } catch (IllegalArgumentException e) {
        throw new InvalidConstraintException(
            multipleOf.path(),
            "multipleOf is %s; %s. Leave it out and check the value afterwards."
                .formatted(multipleOf.value().toPlainString(), e.getMessage()),
            e);
      }
    }
    automata.addFirst(format(integer, integerDigits, fractionDigits));
    try {
      Dfa numbers = Dfa.intersection(automata.toArray(ByteAutomaton[]::new));
      if (numbers.isEmpty()) {
        throw new InvalidConstraintException(
            path, "No %s is within these bounds.".formatted(integer ? "integer" : "number"));
      }
      return numbers;
    } catch (Dfa.TooManyStates e) {
      throw new InvalidConstraintException(
          path, "The numbers within these bounds need too large an automaton; simplify them.", e);
    }
  }

  private static int integerDigits(Bound bound) {
    BigDecimal value = bound.value();
    int digits = Math.max(1, value.precision() - value.scale());
    if (digits > MAX_BOUND_DIGITS || value.scale() > MAX_BOUND_DIGITS) {
      throw new InvalidConstraintException(
          bound.path(),
          "The bound has more than %d digits before or behind the point; use a shorter one."
              .formatted(MAX_BOUND_DIGITS));
    }
    return digits;
  }

  private static Dfa format(boolean integer, int integerDigits, int fractionDigits) {
    String whole = "[1-9]\\d{0," + (integerDigits - 1) + "}";
    if (integer) {
      return regex("0|-?" + whole);
    }
    String times = "{0," + (fractionDigits - 1) + "}";
    String fraction = "(\\.\\d{1," + fractionDigits + "})?";
    return regex("(0|-?" + whole + ")" + fraction + "|-0\\.0" + times + "[1-9]\\d" + times);
  }

  private static Dfa regex(String pattern) {
    return RegexCompiler.compile(
        RegexParser.parseWhole(pattern, ""), RegexCompiler.Encoding.PLAIN, "");
  }
}
