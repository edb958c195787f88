package dev.lily.engine.constraint;

import java.util.Arrays;

/**
 * Follows one answer through its grammar, token by token, and tells which tokens may come next: a
 * token may if and only if a whole answer begins with what was written and the token's bytes, an
 * end token if and only if what was written is a whole answer. There always is one. One thread at a
 * time.
 */
public final class Matcher {
  /**
   * Most alternatives followed at the same time. Where a grammar is so ambiguous that there are
   * more, the rest is not offered; those that are followed stay complete.
   */
  static final int MAX_READINGS = 256;

  private final Grammar grammar;
  private final TokenVocabulary vocabulary;
  private final CallStack calls = new CallStack();

  /** The present, then one for each byte of a token being tried. */
  private final Readings[] levels;

  /** Those of the present that are not inside a free string. */
  private final Readings structural = new Readings();

  private Readings next = new Readings();

  public Matcher(Grammar grammar, TokenVocabulary vocabulary) {
    this.grammar = grammar;
    this.vocabulary = vocabulary;
    levels = new Readings[vocabulary.longest() + 1];
    for (int i = 0; i < levels.length; i++) {
      levels[i] = new Readings();
    }
    arrive(levels[0], grammar.start, 0, CallStack.EMPTY);
  }

  Grammar grammar() {
    return grammar;
  }

  Readings present() {
    return levels[0];
  }

  CallStack calls() {
    return calls;
  }

  /** Whether what was written is a whole answer. */
  public boolean isComplete() {
    return levels[0].complete;
  }

  /** Whether it is a whole answer to which nothing can be added. */
  public boolean isFinished() {
    return levels[0].complete && levels[0].size == 0;
  }

  /** Whether a token that is no end token may come next. */
  public boolean allows(int token) {
    byte[] text = vocabulary.text(token);
    if (text == null || text.length == 0 || text.length >= levels.length) {
      return false;
    }
    int mark = calls.mark();
    boolean alive = true;
    for (int i = 0; i < text.length && alive; i++) {
      alive = step(levels[i], text[i] & 0xFF, levels[i + 1]);
    }
    calls.release(mark);
    return alive;
  }

  /**
   * Goes on by a token that is no end token.
   *
   * @throws IllegalArgumentException if the token may not come next; nothing has changed then
   */
  public void advance(int token) {
    byte[] text = vocabulary.text(token);
    if (text == null || !allows(token)) {
      throw new IllegalArgumentException(
          "Token " + token + " does not follow the constraint; it was not allowed by the mask");
    }
    for (byte b : text) {
      step(levels[0], b & 0xFF, next);
      Readings past = levels[0];
      levels[0] = next;
      next = past;
    }
    Readings present = levels[0];
    if (calls.isWasteful(present.size)) {
      calls.keepOnly(present.stacks, present.size);
    }
  }

  /**
   * Computes which tokens may come next.
   *
   * @param mask bit {@code t & 63} of word {@code t >> 6} is set if token {@code t} may; {@link
   *     TokenVocabulary#maskWords} words
   */
  void fill(long[] mask) {
    Arrays.fill(mask, 0);
    Readings present = levels[0];
    structural.clear();
    int plain = 0;
    for (int i = 0; i < present.size; i++) {
      int node = present.nodes[i];
      if (grammar.plainLoops[node]) {
        plain = Math.max(plain, grammar.maximum[node] - present.counters[i]);
      } else {
        structural.add(node, present.counters[i], present.stacks[i], calls);
      }
    }
    if (plain > 0) {
      vocabulary.allowPlain(plain, mask);
    }
    if (present.complete) {
      vocabulary.allowEnds(mask);
    }
    int mark = calls.mark();
    walk(vocabulary.others, present, mask);
    walk(vocabulary.plain, structural, mask);
    calls.release(mark);
  }

  private void walk(TokenTrie trie, Readings from, long[] mask) {
    if (from.size == 0) {
      return;
    }
    from.mark = calls.mark();
    int size = trie.size();
    for (int node = 0; node < size; ) {
      int depth = trie.depth[node];
      Readings before = depth == 1 ? from : levels[depth - 1];
      calls.release(before.mark);
      Readings after = levels[depth];
      boolean alive = step(before, trie.bytes[node] & 0xFF, after);
      if (alive && trie.token[node] >= 0) {
        trie.allow(node, mask);
      }
      if (after.size > 0) {
        after.mark = calls.mark();
        node++;
      } else {
        node = trie.skip[node];
      }
    }
  }

  private boolean step(Readings before, int unsignedByte, Readings after) {
    after.clear();
    for (int i = 0; i < before.size; i++) {
      int node = before.nodes[i];
      int end = grammar.otherEdges[node];
      for (int edge = grammar.byteEdges[node]; edge < end; edge++) {
        int label = grammar.labels[edge];
        if (unsignedByte <= ((label >> 8) & 0xFF)) {
          int counter = before.counters[i];
          if (unsignedByte >= (label & 0xFF) && isOpen(label, node, counter)) {
            arrive(after, grammar.targets[edge], raised(label, node, counter), before.stacks[i]);
          }
          break;
        }
      }
    }
    return after.isAlive();
  }

  private boolean isOpen(int label, int node, int counter) {
    return ((label & Grammar.BELOW_MAX) == 0 || counter < grammar.maximum[node])
        && ((label & Grammar.AT_LEAST_MIN) == 0 || counter >= grammar.minimum[node]);
  }

  private int raised(int label, int node, int counter) {
    return (label & Grammar.RAISE) == 0
        ? counter
        : Math.min(counter + 1, Math.max(counter, grammar.saturation[node]));
  }

  /** Adds the places that are reached from a node without a byte. */
  private void arrive(Readings at, int node, int counter, int stack) {
    int depth = calls.depth(stack);
    if (depth + grammar.minStack[node] > Grammar.MAX_STACK) {
      return;
    }
    int others = grammar.otherEdges[node];
    if (grammar.byteEdges[node] < others) {
      at.add(node, counter, stack, calls);
    }
    if (grammar.ends[node]) {
      if (stack == CallStack.EMPTY) {
        at.complete = true;
      } else {
        arrive(at, calls.node(stack), calls.counter(stack), calls.below(stack));
      }
    }
    int end = grammar.byteEdges[node + 1];
    for (int edge = others; edge < end; edge++) {
      int label = grammar.labels[edge];
      if (isOpen(label, node, counter)) {
        int target = grammar.targets[edge];
        int call = grammar.calls[edge];
        int raised = raised(label, node, counter);
        if (call == Grammar.NO_CALL) {
          arrive(at, target, raised, stack);
        } else if (depth + grammar.minStack[target] <= Grammar.MAX_STACK
            && depth + 1 + grammar.minStack[call] <= Grammar.MAX_STACK) {
          arrive(at, call, 0, calls.push(stack, target, raised));
        }
      }
    }
  }
}
