package dev.lily.engine.constraint;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The languages of numbers and strings that a schema's assertions describe. */
final class ScalarLanguages {
  private ScalarLanguages() {}

  static Dfa numbers(String type, Assertions assertions, SchemaLocation schema) {
    List<NumberLanguage.Bound> lower = new ArrayList<>();
    List<NumberLanguage.Bound> upper = new ArrayList<>();
    addBounds(assertions, "minimum", false, lower);
    addBounds(assertions, "exclusiveMinimum", true, lower);
    addBounds(assertions, "maximum", false, upper);
    addBounds(assertions, "exclusiveMaximum", true, upper);
    boolean integer = type.equals("integer");
    SchemaLocation format = assertions.find("format");
    if (format != null && !isStringFormat(assertions, format)) {
      addFormat(format, integer, lower, upper);
    }
    List<NumberLanguage.Bound> step = new ArrayList<>();
    addBounds(assertions, "multipleOf", false, step);
    return NumberLanguage.of(
        integer, lower, upper, step.isEmpty() ? null : step.getFirst(), schema.path());
  }

  /** Whether a format is about the strings that the schema allows too. */
  private static boolean isStringFormat(Assertions assertions, SchemaLocation format) {
    return StringFormats.pattern(format.text()) != null
        && (assertions.types() == null || assertions.types().contains("string"));
  }

  private static void addBounds(
      Assertions assertions, String keyword, boolean exclusive, List<NumberLanguage.Bound> bounds) {
    for (SchemaLocation place : assertions.all(keyword)) {
      if (!place.node().isNumber()) {
        throw place.refused(
            "the value is %s; it must be a number%s"
                .formatted(
                    place.shown(),
                    place.node().isBoolean()
                        ? ", as in draft 2020-12 (a boolean is draft 4)."
                        : "."));
      }
      bounds.add(new NumberLanguage.Bound(decimal(place), exclusive, place.path()));
    }
  }

  private static BigDecimal decimal(SchemaLocation place) {
    BigDecimal value = place.node().decimalValue();
    if (Math.abs((long) value.scale()) > 1000) {
      throw place.refused("the value " + place.shown() + " is too large or too small to compare.");
    }
    return value.signum() == 0 ? BigDecimal.ZERO : value;
  }

  private static void addFormat(
      SchemaLocation format,
      boolean integer,
      List<NumberLanguage.Bound> lower,
      List<NumberLanguage.Bound> upper) {
    int bits =
        switch (format.text()) {
          case "int32" -> 31;
          case "int64" -> 63;
          case "float", "double", "decimal" -> 0;
          default ->
              throw format.refused(
                  "The format '%s' of numbers is not supported; there are int32, int64, float, double."
                      .formatted(format.text()));
        };
    if (bits > 0 && integer) {
      BigDecimal limit = BigDecimal.TWO.pow(bits);
      lower.add(new NumberLanguage.Bound(limit.negate(), false, format.path()));
      upper.add(new NumberLanguage.Bound(limit, true, format.path()));
    }
  }

  /**
   * Strings that the pattern, format and length allow.
   *
   * @param others what else they have to be
   */
  static Dfa strings(
      Assertions assertions,
      int min,
      int max,
      SchemaLocation schema,
      RegexCompiler.Encoding encoding,
      ByteAutomaton... others) {
    List<ByteAutomaton> automata = new ArrayList<>(List.of(others));
    SchemaLocation place = schema;
    for (SchemaLocation pattern : assertions.all("pattern")) {
      place = pattern;
      RegexNode regex = RegexParser.parseAnywhere(pattern.text(), pattern.path());
      automata.add(RegexCompiler.compile(regex, encoding, pattern.path()));
    }
    for (SchemaLocation format : assertions.all("format")) {
      @Nullable String pattern = StringFormats.pattern(format.text());
      if (pattern == null) {
        throw format.refused(
            "The format '%s' is not enforced; enforced are %s. Leave it out or give a pattern."
                .formatted(format.text(), StringFormats.names()));
      }
      place = format;
      RegexNode regex = RegexParser.parseWhole(pattern, format.path());
      automata.add(RegexCompiler.compile(regex, encoding, format.path()));
    }
    if (min > 0 || max != GrammarBuilder.UNBOUNDED) {
      automata.add(new StringLength(encoding == RegexCompiler.Encoding.JSON_STRING, min, max));
    }
    try {
      Dfa strings = Dfa.intersection(automata.toArray(ByteAutomaton[]::new));
      if (strings.isEmpty()) {
        throw place.refused(
            "No string satisfies the pattern, format and length that are asked for together.");
      }
      return strings;
    } catch (Dfa.TooManyStates e) {
      throw new InvalidConstraintException(
          place.path(),
          "Pattern, format and length together need too large an automaton. Put the length into the"
              + " pattern, or ask for a shorter one.",
          e);
    }
  }
}
