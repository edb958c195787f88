package dev.lily.engine.checkpoint;

import java.util.Collection;
import java.util.stream.Collectors;

/** Puts untrusted names into messages: short, printable and on one line. */
final class MessageText {
  private static final int MAX_QUOTED_CHARS = 200;
  private static final int MAX_LISTED = 20;

  private MessageText() {}

  /** The text in quotes, control characters replaced, cut when long. */
  static String quoted(String text) {
    StringBuilder out = new StringBuilder("'");
    text.codePoints()
        .limit(MAX_QUOTED_CHARS)
        .map(c -> Character.isISOControl(c) || Character.getType(c) == Character.FORMAT ? '?' : c)
        .forEach(out::appendCodePoint);
    if (text.codePointCount(0, text.length()) > MAX_QUOTED_CHARS) {
      out.append("...");
    }
    return out.append("'").toString();
  }

  /** The first names in quotes and the number of the others. */
  static String listed(Collection<String> names) {
    String first =
        names.stream().limit(MAX_LISTED).map(MessageText::quoted).collect(Collectors.joining(", "));
    int others = names.size() - MAX_LISTED;
    return others > 0 ? "%s and %d more".formatted(first, others) : first;
  }
}
