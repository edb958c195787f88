package dev.lily.engine.constraint;

import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The formats of strings that are enforced, as patterns. Each accepts only what its standard does.
 */
final class StringFormats {
  private static final String MONTH_DAY =
      "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)"
          + "|02-(0[1-9]|1\\d|2[0-8]))";
  private static final String LEAP_YEAR =
      "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)";
  private static final String DATE = "(\\d{4}-" + MONTH_DAY + "|" + LEAP_YEAR + "-02-29)";

  /** No further than java.time reads; there are none beyond 14 hours. */
  private static final String OFFSET = "(Z|[+\\-]((0\\d|1[0-7]):[0-5]\\d|18:00))";

  private static final String TIME = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?" + OFFSET;
  private static final String LABEL = "[A-Za-z0-9]([A-Za-z0-9\\-]{0,30}[A-Za-z0-9])?";
  private static final String HOST = LABEL + "(\\." + LABEL + "){0,3}";
  private static final String BYTE = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  private static final String HEX = "[0-9A-Fa-f]";
  private static final String GROUP = HEX + "{1,4}";

  private static final Map<String, String> PATTERNS =
      new TreeMap<>(
          Map.of(
              "date",
              DATE,
              "time",
              TIME,
              "date-time",
              DATE + "T" + TIME,
              "uuid",
              HEX + "{8}-" + HEX + "{4}-" + HEX + "{4}-" + HEX + "{4}-" + HEX + "{12}",
              "email",
              "[A-Za-z0-9_+\\-]{1,32}(\\.[A-Za-z0-9_+\\-]{1,24}){0,1}@"
                  + LABEL
                  + "(\\."
                  + LABEL
                  + "){0,2}\\.[A-Za-z]{2,12}",
              "hostname",
              HOST,
              "ipv4",
              BYTE + "(\\." + BYTE + "){3}",
              "ipv6",
              "(" + GROUP + ":){7}" + GROUP + "|::(" + GROUP + "(:" + GROUP + "){0,5})?",
              "duration",
              "P(\\d{1,6}W|(\\d{1,6}Y(\\d{1,6}M(\\d{1,6}D)?)?|\\d{1,6}M(\\d{1,6}D)?|\\d{1,6}D)"
                  + "(T(\\d{1,6}H(\\d{1,6}M(\\d{1,6}S)?)?|\\d{1,6}M(\\d{1,6}S)?|\\d{1,6}S))?"
                  + "|T(\\d{1,6}H(\\d{1,6}M(\\d{1,6}S)?)?|\\d{1,6}M(\\d{1,6}S)?|\\d{1,6}S))",
              "uri",
              "[a-z][a-z0-9+.\\-]{0,15}://"
                  + HOST
                  + "(:[1-9]\\d{0,3})?(/([A-Za-z0-9_.~\\-]|%[0-9A-F]{2})*)*"
                  + "(\\?[A-Za-z0-9_.~=&\\-]*)?(#[A-Za-z0-9_.~\\-]*)?"));

  private StringFormats() {}

  /** The pattern of a format, or {@code null} if it is not enforced. */
  static @Nullable String pattern(String format) {
    return PATTERNS.get(format);
  }

  /** The names of the enforced formats, for messages. */
  static String names() {
    return String.join(", ", PATTERNS.keySet());
  }
}
