package dev.lily.engine.constraint;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Compiles regular expressions to automata over bytes: UTF-8 as it is, or as the inside of a JSON
 * string in its shortest form. Bounded in states and in work, so that no pattern takes long.
 */
final class RegexCompiler {
  /** How text is written. */
  enum Encoding {
    PLAIN,
    JSON_STRING
  }

  private static final int MAX_NFA_STATES = 60_000;
  private static final long MAX_WORK = 10_000_000;
  private static final CodePoints ESCAPED =
      CodePoints.of(0, 0x1F).union(CodePoints.of('"')).union(CodePoints.of('\\'));

  private final Encoding encoding;

  private static final int EPSILON = -1;

  /** Pairs of target and {@code low | high << 8}, or {@link #EPSILON}. */
  private final List<int[]> edges = new ArrayList<>();

  private long work;

  private RegexCompiler(Encoding encoding) {
    this.encoding = encoding;
  }

  /**
   * @throws InvalidConstraintException if the automaton gets too large
   */
  static Dfa compile(RegexNode regex, Encoding encoding, String path) {
    try {
      RegexCompiler compiler = new RegexCompiler(encoding);
      int start = compiler.state();
      int end = compiler.state();
      compiler.build(regex, start, end);
      return compiler.determinize(start, end);
    } catch (Dfa.TooManyStates e) {
      throw new InvalidConstraintException(
          path,
          "The pattern needs too large an automaton. Use smaller repetitions, and fewer of them"
              + " behind parts that can match in several ways.",
          e);
    }
  }

  /** The bytes of a text. */
  static byte[] encode(String text, Encoding encoding) {
    if (encoding == Encoding.PLAIN) {
      return text.getBytes(UTF_8);
    }
    StringBuilder escaped = new StringBuilder();
    text.codePoints()
        .forEach(
            c -> {
              if (ESCAPED.contains(c)) {
                escaped.append(escape(c));
              } else {
                escaped.appendCodePoint(c);
              }
            });
    return escaped.toString().getBytes(UTF_8);
  }

  private static String escape(int codePoint) {
    return switch (codePoint) {
      case '"' -> "\\\"";
      case '\\' -> "\\\\";
      case '\b' -> "\\b";
      case '\f' -> "\\f";
      case '\n' -> "\\n";
      case '\r' -> "\\r";
      case '\t' -> "\\t";
      default -> "\\u%04x".formatted(codePoint);
    };
  }

  private int state() {
    if (edges.size() >= MAX_NFA_STATES) {
      throw new Dfa.TooManyStates();
    }
    edges.add(new int[0]);
    return edges.size() - 1;
  }

  private void edge(int from, int to, int label) {
    int[] old = edges.get(from);
    int[] longer = Arrays.copyOf(old, old.length + 2);
    longer[old.length] = to;
    longer[old.length + 1] = label;
    edges.set(from, longer);
    spend(old.length);
  }

  private void spend(int amount) {
    work += amount;
    if (work > MAX_WORK) {
      throw new Dfa.TooManyStates();
    }
  }

  private void build(RegexNode node, int from, int to) {
    switch (node) {
      case RegexNode.OneOf(CodePoints set) -> buildSet(set, from, to);
      case RegexNode.Sequence(List<RegexNode> parts) -> {
        int at = from;
        for (RegexNode part : parts) {
          int next = state();
          build(part, at, next);
          at = next;
        }
        edge(at, to, EPSILON);
      }
      case RegexNode.Choice(List<RegexNode> branches) -> {
        for (RegexNode branch : branches) {
          int start = state();
          edge(from, start, EPSILON);
          build(branch, start, to);
        }
      }
      case RegexNode.Repeat repeat -> buildRepeat(repeat, from, to);
      case RegexNode.Anchor _ ->
          throw new IllegalStateException("An anchor is left over after parsing");
    }
  }

  private void buildRepeat(RegexNode.Repeat repeat, int from, int to) {
    int at = state();
    edge(from, at, EPSILON);
    for (int i = 0; i < repeat.min(); i++) {
      int next = state();
      build(repeat.part(), at, next);
      at = next;
    }
    if (repeat.max() == RegexNode.Repeat.UNBOUNDED) {
      int loop = state();
      edge(at, loop, EPSILON);
      int back = state();
      build(repeat.part(), loop, back);
      edge(back, loop, EPSILON);
      edge(loop, to, EPSILON);
      return;
    }
    for (int i = repeat.min(); i < repeat.max(); i++) {
      edge(at, to, EPSILON);
      int next = state();
      build(repeat.part(), at, next);
      at = next;
    }
    edge(at, to, EPSILON);
  }

  private void buildSet(CodePoints set, int from, int to) {
    Map<String, Integer> suffixes = new HashMap<>();
    CodePoints raw = set;
    if (encoding == Encoding.JSON_STRING) {
      raw = set.minus(ESCAPED);
      buildEscapes(set.intersect(ESCAPED), from, to, suffixes);
    }
    for (int r = 0; r < raw.numRanges(); r++) {
      Utf8.sequences(
          raw.first(r),
          raw.last(r),
          (low, high, length) -> buildSequence(low, high, length, from, to, suffixes));
    }
  }

  private void buildEscapes(CodePoints set, int from, int to, Map<String, Integer> suffixes) {
    for (int r = 0; r < set.numRanges(); r++) {
      for (int c = set.first(r); c <= set.last(r); c++) {
        int[] bytes = escape(c).chars().toArray();
        int[] high = bytes.clone();
        int last = bytes.length - 1;
        if (last > 1) { // Neighbours among the hexadecimal ones share a range.
          while (c < set.last(r) && follows(escape(c + 1), bytes, high[last])) {
            c++;
            high[last]++;
          }
        }
        buildSequence(bytes, high, bytes.length, from, to, suffixes);
      }
    }
  }

  private static boolean follows(String escape, int[] bytes, int last) {
    int length = bytes.length;
    if (escape.length() != length || escape.charAt(length - 1) != last + 1) {
      return false;
    }
    for (int i = 0; i < length - 1; i++) {
      if (escape.charAt(i) != bytes[i]) {
        return false;
      }
    }
    return true;
  }

  /** Adds a path; paths to the same state share what they end with. */
  private void buildSequence(
      int[] low, int[] high, int length, int from, int to, Map<String, Integer> suffixes) {
    StringBuilder suffix = new StringBuilder();
    int next = to;
    for (int i = length - 1; i > 0; i--) {
      suffix.append((char) low[i]).append((char) high[i]);
      Integer known = suffixes.get(suffix.toString());
      if (known == null) {
        known = state();
        edge(known, next, low[i] | (high[i] << 8));
        suffixes.put(suffix.toString(), known);
      }
      next = known;
    }
    edge(from, next, low[0] | (high[0] << 8));
  }

  private Dfa determinize(int start, int end) {
    Map<BitSet, Integer> ids = new HashMap<>();
    List<BitSet> sets = new ArrayList<>();
    List<int[]> rows = new ArrayList<>();
    BitSet accepting = new BitSet();
    BitSet first = new BitSet();
    addClosure(first, start);
    ids.put(first, 0);
    sets.add(first);
    for (int state = 0; state < sets.size(); state++) {
      BitSet set = sets.get(state);
      int[] row = new int[256];
      Arrays.fill(row, ByteAutomaton.DEAD);
      rows.add(row);
      if (set.get(end)) {
        accepting.set(state);
      }
      BitSet borders = borders(set);
      for (int low = borders.nextSetBit(0); low >= 0 && low < 256; ) {
        int next = borders.nextSetBit(low + 1);
        int high = next < 0 ? 256 : next;
        BitSet target = targets(set, low);
        if (!target.isEmpty()) {
          Integer id = ids.putIfAbsent(target, sets.size());
          if (id == null) {
            id = sets.size();
            sets.add(target);
            Dfa.requireFewer(sets.size());
          }
          Arrays.fill(row, low, high, id);
        }
        low = next;
      }
    }
    return new Dfa(rows, accepting);
  }

  /** The bytes at which the set of targets may change. */
  private BitSet borders(BitSet set) {
    BitSet borders = new BitSet(257);
    for (int s = set.nextSetBit(0); s >= 0; s = set.nextSetBit(s + 1)) {
      int[] out = edges.get(s);
      spend(1 + out.length);
      for (int i = 0; i < out.length; i += 2) {
        if (out[i + 1] != EPSILON) {
          borders.set(out[i + 1] & 0xFF);
          borders.set((out[i + 1] >> 8) + 1);
        }
      }
    }
    return borders;
  }

  private BitSet targets(BitSet set, int unsignedByte) {
    BitSet targets = new BitSet();
    for (int s = set.nextSetBit(0); s >= 0; s = set.nextSetBit(s + 1)) {
      int[] out = edges.get(s);
      spend(1 + out.length);
      for (int i = 0; i < out.length; i += 2) {
        int label = out[i + 1];
        if (label != EPSILON && unsignedByte >= (label & 0xFF) && unsignedByte <= label >> 8) {
          addClosure(targets, out[i]);
        }
      }
    }
    return targets;
  }

  private void addClosure(BitSet set, int state) {
    if (set.get(state)) {
      return;
    }
    spend(set.size() >> 6);
    List<Integer> pending = new ArrayList<>();
    pending.add(state);
    set.set(state);
    while (!pending.isEmpty()) {
      int[] out = edges.get(pending.removeLast());
      spend(1 + out.length);
      for (int i = 0; i < out.length; i += 2) {
        if (out[i + 1] == EPSILON && !set.get(out[i])) {
          set.set(out[i]);
          pending.add(out[i]);
        }
      }
    }
  }
}
