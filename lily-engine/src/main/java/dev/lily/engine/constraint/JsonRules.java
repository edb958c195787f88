package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntSupplier;

/**
 * Rules of JSON that every schema uses. Values are written compactly, with at most one space behind
 * a colon or comma.
 */
final class JsonRules {
  private static final int NONE = -1;

  private record Lengths(int min, int max) {}

  private final GrammarBuilder grammar;
  private final Map<Lengths, Integer> strings = new HashMap<>();
  private int value = NONE;
  private int object = NONE;
  private int array = NONE;
  private int integer = NONE;
  private int number = NONE;
  private int bool = NONE;

  JsonRules(GrammarBuilder grammar) {
    this.grammar = grammar;
  }

  /** The rule of any value. */
  int value() {
    if (value == NONE) {
      value = grammar.node();
      int end = grammar.endNode();
      grammar.literals(value, literals("true", "false", "null"), end);
      grammar.language(value, NumberLanguage.anyNumber(), end);
      grammar.call(value, string(0, GrammarBuilder.UNBOUNDED), end);
      grammar.epsilon(value, object());
      grammar.epsilon(value, array());
    }
    return value;
  }

  /** The rule of any object. */
  int object() {
    if (object == NONE) {
      object = grammar.node();
      int end = grammar.endNode();
      int opened = grammar.node();
      int more = grammar.node();
      grammar.bytes(object, '{', '{', opened);
      grammar.bytes(opened, '}', '}', end);
      grammar.bytes(more, '}', '}', end);
      int key = grammar.node();
      int colon = grammar.node();
      grammar.epsilon(opened, key);
      grammar.epsilon(afterSeparator(more, ',', 0), key);
      grammar.call(key, string(0, GrammarBuilder.UNBOUNDED), colon);
      grammar.call(afterSeparator(colon, ':', 0), value(), more);
    }
    return object;
  }

  /** The rule of any array. */
  int array() {
    if (array == NONE) {
      array = grammar.node();
      int end = grammar.endNode();
      int opened = grammar.node();
      int more = grammar.node();
      int item = grammar.node();
      grammar.bytes(array, '[', '[', opened);
      grammar.bytes(opened, ']', ']', end);
      grammar.bytes(more, ']', ']', end);
      grammar.epsilon(opened, item);
      grammar.epsilon(afterSeparator(more, ',', 0), item);
      grammar.call(item, value(), more);
    }
    return array;
  }

  int integer() {
    if (integer == NONE) {
      integer = rule(NumberLanguage.anyInteger());
    }
    return integer;
  }

  int number() {
    if (number == NONE) {
      number = rule(NumberLanguage.anyNumber());
    }
    return number;
  }

  int bool() {
    if (bool == NONE) {
      bool = grammar.node();
      grammar.literals(bool, literals("true", "false"), grammar.endNode());
    }
    return bool;
  }

  private int rule(Dfa language) {
    int start = grammar.node();
    grammar.language(start, language, grammar.endNode());
    return start;
  }

  /** The node behind a comma or colon and its optional space. */
  int afterSeparator(int from, int separator, int flags) {
    int behind = grammar.node();
    int space = grammar.node();
    grammar.bytes(from, separator, separator, behind, flags);
    grammar.bytes(behind, ' ', ' ', space);
    grammar.epsilon(behind, space);
    return space;
  }

  private static List<byte[]> literals(String... words) {
    return List.of(words).stream().map(word -> word.getBytes(US_ASCII)).toList();
  }

  /**
   * The rule of strings by length in scalar values, with every escape that JSON has.
   *
   * @param max {@link GrammarBuilder#UNBOUNDED} for no limit
   */
  int string(int min, int max) {
    return strings.computeIfAbsent(new Lengths(min, max), _ -> buildString(min, max));
  }

  private int buildString(int min, int max) {
    int start = grammar.node();
    int body = grammar.counting(min, max);
    grammar.bytes(start, '"', '"', body);
    grammar.bytes(body, '"', '"', grammar.endNode(), Grammar.AT_LEAST_MIN);
    grammar.plainLoop(body);
    int character = Grammar.BELOW_MAX | Grammar.RAISE;
    grammar.bytes(body, ' ', '!', body, character);
    grammar.bytes(body, '#', '[', body, character);
    grammar.bytes(body, ']', 0x7F, body, character);
    multibyte(grammar, body, body, () -> grammar.counting(min, max), character);
    escapes(body, min, max, character);
    return start;
  }

  /**
   * Adds the UTF-8 sequences of two to four bytes.
   *
   * @param flags of the edges that take a first byte
   */
  static void multibyte(GrammarBuilder grammar, int from, int to, IntSupplier newNode, int flags) {
    int one = newNode.getAsInt();
    int two = newNode.getAsInt();
    int three = newNode.getAsInt();
    int afterE0 = newNode.getAsInt();
    int afterEd = newNode.getAsInt();
    int afterF0 = newNode.getAsInt();
    int afterF4 = newNode.getAsInt();
    grammar.bytes(one, 0x80, 0xBF, to);
    grammar.bytes(two, 0x80, 0xBF, one);
    grammar.bytes(three, 0x80, 0xBF, two);
    grammar.bytes(afterE0, 0xA0, 0xBF, one);
    grammar.bytes(afterEd, 0x80, 0x9F, one);
    grammar.bytes(afterF0, 0x90, 0xBF, two);
    grammar.bytes(afterF4, 0x80, 0x8F, two);
    grammar.bytes(from, 0xC2, 0xDF, one, flags);
    grammar.bytes(from, 0xE0, 0xE0, afterE0, flags);
    grammar.bytes(from, 0xE1, 0xEC, two, flags);
    grammar.bytes(from, 0xED, 0xED, afterEd, flags);
    grammar.bytes(from, 0xEE, 0xEF, two, flags);
    grammar.bytes(from, 0xF0, 0xF0, afterF0, flags);
    grammar.bytes(from, 0xF1, 0xF3, three, flags);
    grammar.bytes(from, 0xF4, 0xF4, afterF4, flags);
  }

  private void escapes(int body, int min, int max, int character) {
    int escape = grammar.counting(min, max);
    grammar.bytes(body, '\\', '\\', escape, character);
    for (char c : "\"/\\bfnrt".toCharArray()) {
      grammar.bytes(escape, c, c, body);
    }
    int unicode = grammar.counting(min, max);
    grammar.bytes(escape, 'u', 'u', unicode);
    int lastTwo = digits(2, body, min, max);
    int lastThree = digits(1, lastTwo, min, max);
    int afterD = grammar.counting(min, max);
    grammar.bytes(unicode, '0', '9', lastThree);
    for (char c : "ABCEFabcef".toCharArray()) {
      grammar.bytes(unicode, c, c, lastThree);
    }
    grammar.bytes(unicode, 'D', 'D', afterD);
    grammar.bytes(unicode, 'd', 'd', afterD);
    grammar.bytes(afterD, '0', '7', lastTwo);
    // A surrogate must be the first of a pair, and the pair is one character.
    int lowD = grammar.counting(min, max);
    grammar.bytes(lowD, 'C', 'F', lastTwo);
    grammar.bytes(lowD, 'c', 'f', lastTwo);
    int lowU = grammar.counting(min, max);
    grammar.bytes(lowU, 'D', 'D', lowD);
    grammar.bytes(lowU, 'd', 'd', lowD);
    int lowEscape = grammar.counting(min, max);
    grammar.bytes(lowEscape, 'u', 'u', lowU);
    int pair = grammar.counting(min, max);
    grammar.bytes(pair, '\\', '\\', lowEscape);
    int highTwo = digits(2, pair, min, max);
    grammar.bytes(afterD, '8', '9', highTwo);
    grammar.bytes(afterD, 'A', 'B', highTwo);
    grammar.bytes(afterD, 'a', 'b', highTwo);
  }

  /** A node from which so many hexadecimal digits lead to another. */
  private int digits(int count, int to, int min, int max) {
    int at = to;
    for (int i = 0; i < count; i++) {
      int node = grammar.counting(min, max);
      grammar.bytes(node, '0', '9', at);
      grammar.bytes(node, 'A', 'F', at);
      grammar.bytes(node, 'a', 'f', at);
      at = node;
    }
    return at;
  }
}
