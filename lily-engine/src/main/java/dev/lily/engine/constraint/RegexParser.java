package dev.lily.engine.constraint;

import java.util.ArrayList;
import java.util.List;

/**
 * Parses the part of ECMA-262 regular expressions that is regular: literals, classes, groups,
 * alternatives, quantifiers, and anchors at the ends of the whole or of its outermost alternatives.
 * What looks around, refers back or depends on a locale is refused.
 */
final class RegexParser {
  /** Most chars of a pattern. */
  static final int MAX_LENGTH = 4096;

  /** Largest bound of a quantifier. */
  static final int MAX_REPEAT = 1000;

  private static final int MAX_DEPTH = 50;
  private static final CodePoints DIGITS = CodePoints.of('0', '9');
  private static final CodePoints WORD =
      DIGITS
          .union(CodePoints.of('A', 'Z'))
          .union(CodePoints.of('a', 'z'))
          .union(CodePoints.of('_'));
  private static final CodePoints LINE_ENDS =
      CodePoints.of('\n').union(CodePoints.of('\r')).union(CodePoints.of(0x2028, 0x2029));
  private static final CodePoints SPACE =
      CodePoints.of('\t', '\r')
          .union(CodePoints.of(' '))
          .union(CodePoints.of(0xA0))
          .union(CodePoints.of(0x1680))
          .union(CodePoints.of(0x2000, 0x200A))
          .union(CodePoints.of(0x2028, 0x2029))
          .union(CodePoints.of(0x202F))
          .union(CodePoints.of(0x205F))
          .union(CodePoints.of(0x3000))
          .union(CodePoints.of(0xFEFF));

  private final String pattern;
  private final String path;
  private int at;
  private int openGroups;

  private RegexParser(String pattern, String path) {
    this.pattern = pattern;
    this.path = path;
  }

  /**
   * Parses a pattern that has to match the whole text; anchors at its ends are allowed.
   *
   * @throws InvalidConstraintException if it is wrong or not in the subset
   */
  static RegexNode parseWhole(String pattern, String path) {
    return new RegexParser(pattern, path).parse(true);
  }

  /**
   * Parses a pattern that may match anywhere in the text, as JSON Schema has it; the result matches
   * the whole text.
   *
   * @throws InvalidConstraintException if it is wrong or not in the subset
   */
  static RegexNode parseAnywhere(String pattern, String path) {
    return new RegexParser(pattern, path).parse(false);
  }

  private RegexNode parse(boolean whole) {
    if (pattern.length() > MAX_LENGTH) {
      throw refused(
          "the pattern has %d chars; at most %d are allowed"
              .formatted(pattern.length(), MAX_LENGTH));
    }
    RegexNode node = alternatives(0);
    if (at < pattern.length()) {
      throw refused("there is a ')' without its '(' at char " + at);
    }
    List<RegexNode> branches =
        node instanceof RegexNode.Choice choice ? choice.branches() : List.of(node);
    return new RegexNode.Choice(branches.stream().map(b -> anchored(b, whole)).toList());
  }

  /** Takes the anchors at a branch's ends off and lets it match anywhere where it has none. */
  private RegexNode anchored(RegexNode branch, boolean whole) {
    List<RegexNode> parts =
        new ArrayList<>(
            branch instanceof RegexNode.Sequence sequence ? sequence.parts() : List.of(branch));
    boolean start =
        !parts.isEmpty() && parts.getFirst() instanceof RegexNode.Anchor(boolean s) && s;
    if (start) {
      parts.removeFirst();
    }
    boolean end = !parts.isEmpty() && parts.getLast() instanceof RegexNode.Anchor(boolean s) && !s;
    if (end) {
      parts.removeLast();
    }
    if (!whole && !start) {
      parts.addFirst(RegexNode.ANYTHING);
    }
    if (!whole && !end) {
      parts.addLast(RegexNode.ANYTHING);
    }
    return new RegexNode.Sequence(parts);
  }

  private RegexNode alternatives(int depth) {
    if (depth > MAX_DEPTH) {
      throw refused("groups are nested more than " + MAX_DEPTH + " deep");
    }
    List<RegexNode> branches = new ArrayList<>();
    branches.add(sequence(depth));
    while (at < pattern.length() && pattern.charAt(at) == '|') {
      at++;
      branches.add(sequence(depth));
    }
    return branches.size() == 1 ? branches.getFirst() : new RegexNode.Choice(branches);
  }

  private RegexNode sequence(int depth) {
    List<RegexNode> parts = new ArrayList<>();
    while (at < pattern.length() && pattern.charAt(at) != '|' && pattern.charAt(at) != ')') {
      RegexNode atom = atom(depth);
      parts.add(atom instanceof RegexNode.Anchor ? atom : quantified(atom));
    }
    return parts.size() == 1 ? parts.getFirst() : new RegexNode.Sequence(parts);
  }

  private RegexNode atom(int depth) {
    int codePoint = next();
    return switch (codePoint) {
      case '^' -> anchor(true);
      case '$' -> anchor(false);
      case '(' -> group(depth);
      case '[' -> new RegexNode.OneOf(charClass());
      case '.' -> new RegexNode.OneOf(LINE_ENDS.complement());
      case '\\' -> new RegexNode.OneOf(escape(false));
      case '*', '+', '?' -> throw refused("nothing to repeat before char " + (at - 1));
      case '{', '}', ']' ->
          throw refused(
              "'%c' at char %d stands for itself only with a backslash"
                  .formatted(codePoint, at - 1));
      default -> new RegexNode.OneOf(scalar(codePoint));
    };
  }

  /** An anchor where only the ends of an outermost alternative lie before or behind it. */
  private RegexNode anchor(boolean start) {
    int before = at - 2;
    int behind = at;
    boolean atEdge =
        start
            ? before < 0 || pattern.charAt(before) == '|'
            : behind == pattern.length() || pattern.charAt(behind) == '|';
    if (!atEdge || openGroups > 0) {
      throw refused(
          "'%c' at char %d is not at an end of the pattern or of one of its outermost alternatives"
              .formatted(pattern.charAt(at - 1), at - 1));
    }
    return new RegexNode.Anchor(start);
  }

  private RegexNode group(int depth) {
    if (pattern.startsWith("?:", at)) {
      at += 2;
    } else if (pattern.startsWith("?<", at)
        && at + 2 < pattern.length()
        && Character.isLetter(pattern.charAt(at + 2))) {
      int end = pattern.indexOf('>', at);
      if (end < 0) {
        throw refused("the name of the group at char " + (at - 1) + " has no '>'");
      }
      at = end + 1;
    } else if (pattern.startsWith("?", at)) {
      throw refused(
          "the group at char %d looks around or sets flags, which a token mask cannot follow;"
                  .formatted(at - 1)
              + " write the pattern without it");
    }
    openGroups++;
    RegexNode inner = alternatives(depth + 1);
    openGroups--;
    if (at >= pattern.length()) {
      throw refused("a '(' has no ')'");
    }
    at++;
    return inner;
  }

  private RegexNode quantified(RegexNode atom) {
    RegexNode node = atom;
    if (at >= pattern.length()) {
      return node;
    }
    switch (pattern.charAt(at)) {
      case '*' -> node = repeat(node, 0, RegexNode.Repeat.UNBOUNDED, 1);
      case '+' -> node = repeat(node, 1, RegexNode.Repeat.UNBOUNDED, 1);
      case '?' -> node = repeat(node, 0, 1, 1);
      case '{' -> node = counted(node);
      default -> {
        return node;
      }
    }
    if (at < pattern.length()) {
      switch (pattern.charAt(at)) {
        case '?' -> at++; // Lazy or greedy, the language is the same.
        case '*', '+', '{' -> throw refused("char " + at + " repeats a repetition; use a group");
        default -> {}
      }
    }
    return node;
  }

  private RegexNode repeat(RegexNode node, int min, int max, int length) {
    at += length;
    return new RegexNode.Repeat(node, min, max);
  }

  private RegexNode counted(RegexNode node) {
    int end = pattern.indexOf('}', at);
    String bounds = end < 0 ? "" : pattern.substring(at + 1, end);
    int comma = bounds.indexOf(',');
    int min = bound(comma < 0 ? bounds : bounds.substring(0, comma));
    int max = min;
    if (comma >= 0) {
      String upper = bounds.substring(comma + 1);
      max = upper.isEmpty() ? RegexNode.Repeat.UNBOUNDED : bound(upper);
    }
    if (max < min) {
      throw refused("the quantifier {%s} has its bounds the wrong way round".formatted(bounds));
    }
    return repeat(node, min, max, end + 1 - at);
  }

  private int bound(String digits) {
    if (digits.isEmpty() || !digits.chars().allMatch(c -> c >= '0' && c <= '9')) {
      throw refused("the quantifier at char " + at + " is not of the form {n}, {n,} or {n,m}");
    }
    if (digits.length() > 9 || Integer.parseInt(digits) > MAX_REPEAT) {
      throw refused(
          "a quantifier asks for %s times; at most %d are allowed"
              .formatted(digits.length() > 9 ? "very many" : digits, MAX_REPEAT));
    }
    return Integer.parseInt(digits);
  }

  private CodePoints charClass() {
    boolean negated = at < pattern.length() && pattern.charAt(at) == '^';
    if (negated) {
      at++;
    }
    CodePoints set = CodePoints.NONE;
    while (true) {
      if (at >= pattern.length()) {
        throw refused("a '[' has no ']'");
      }
      if (pattern.charAt(at) == ']') {
        at++;
        CodePoints found = negated ? set.complement() : set;
        if (found.isEmpty()) {
          throw refused("the class that ends at char " + (at - 1) + " has no character");
        }
        return found;
      }
      CodePoints member = classMember();
      boolean range =
          at + 1 < pattern.length() && pattern.charAt(at) == '-' && pattern.charAt(at + 1) != ']';
      if (range) {
        at++;
        CodePoints last = classMember();
        if (!isSingle(member) || !isSingle(last) || last.first(0) < member.first(0)) {
          throw refused("the range that ends at char " + (at - 1) + " has no order");
        }
        member = CodePoints.of(member.first(0), last.first(0));
      }
      set = set.union(member);
    }
  }

  private static boolean isSingle(CodePoints set) {
    return set.numRanges() == 1 && set.first(0) == set.last(0);
  }

  private CodePoints classMember() {
    int codePoint = next();
    return codePoint == '\\' ? escape(true) : scalar(codePoint);
  }

  private CodePoints escape(boolean inClass) {
    int c = next();
    return switch (c) {
      case 'd' -> DIGITS;
      case 'D' -> DIGITS.complement();
      case 'w' -> WORD;
      case 'W' -> WORD.complement();
      case 's' -> SPACE;
      case 'S' -> SPACE.complement();
      case 't' -> CodePoints.of('\t');
      case 'n' -> CodePoints.of('\n');
      case 'r' -> CodePoints.of('\r');
      case 'f' -> CodePoints.of('\f');
      case 'v' -> CodePoints.of(0x0B);
      case '0' -> CodePoints.of(0);
      case 'x' -> scalar(hex(2));
      case 'u' -> unicodeEscape();
      default -> {
        if (c == 'b' && inClass) {
          yield CodePoints.of('\b');
        }
        boolean letterOrDigit =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letterOrDigit) {
          throw refused(
              "\\%c at char %d is not in the supported subset (no back references, word borders or"
                      .formatted(c, at - 2)
                  + " Unicode properties); write the characters as a class");
        }
        yield scalar(c);
      }
    };
  }

  private CodePoints unicodeEscape() {
    if (at < pattern.length() && pattern.charAt(at) == '{') {
      int end = pattern.indexOf('}', at);
      if (end < 0 || end - at > 7 || end == at + 1) {
        throw refused("the \\u{…} at char " + at + " is not complete");
      }
      String digits = pattern.substring(at + 1, end);
      at = end + 1;
      return scalar(parseHex(digits));
    }
    int unit = hex(4);
    if (Character.isHighSurrogate((char) unit) && pattern.startsWith("\\u", at)) {
      at += 2;
      int low = hex(4);
      if (Character.isLowSurrogate((char) low)) {
        return CodePoints.of(Character.toCodePoint((char) unit, (char) low));
      }
    }
    return scalar(unit);
  }

  private int hex(int digits) {
    if (at + digits > pattern.length()) {
      throw refused("the escape at the end is not complete");
    }
    String text = pattern.substring(at, at + digits);
    at += digits;
    return parseHex(text);
  }

  private int parseHex(String digits) {
    if (!digits.chars().allMatch(c -> Character.digit(c, 16) >= 0 && c < 0x80)) {
      throw refused("'" + digits + "' before char " + at + " is not hexadecimal");
    }
    return Integer.parseInt(digits, 16);
  }

  private CodePoints scalar(int codePoint) {
    CodePoints set = codePoint > 0x10FFFF ? CodePoints.NONE : CodePoints.of(codePoint);
    if (set.isEmpty()) {
      throw refused("U+%04X before char %d is no character".formatted(codePoint, at));
    }
    return set;
  }

  private int next() {
    if (at >= pattern.length()) {
      throw refused("it ends in the middle of an escape or class");
    }
    int codePoint = pattern.codePointAt(at);
    at += Character.charCount(codePoint);
    return codePoint;
  }

  private InvalidConstraintException refused(String why) {
    String shown = pattern.length() <= 80 ? pattern : pattern.substring(0, 80) + "…";
    return new InvalidConstraintException(
        path, "The pattern '%s' cannot be used: %s.".formatted(shown, why));
  }
}
