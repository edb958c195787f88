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

  private final ReadingsMemo memo = new ReadingsMemo(calls);

  /** Leads nowhere. */
  private final Readings dead = new Readings();

  private Readings present = new Readings();
  private Readings next = new Readings();

  /** Those of the present for which plain characters have to be tried. */
  private final Readings structural = new Readings();

  /** On a walk, the readings behind each byte of a token, and room for those that are not kept. */
  private final Readings[] path;

  private final Readings[] scratch;

  public Matcher(Grammar grammar, TokenVocabulary vocabulary) {
    this.grammar = grammar;
    this.vocabulary = vocabulary;
    scratch = new Readings[vocabulary.longest() + 1];
    for (int i = 0; i < scratch.length; i++) {
      scratch[i] = new Readings();
    }
    path = scratch.clone();
    arrive(present, grammar.start, 0, CallStack.EMPTY);
  }

  Grammar grammar() {
    return grammar;
  }

  Readings present() {
    return present;
  }

  CallStack calls() {
    return calls;
  }

  /** Whether what was written is a whole answer. */
  public boolean isComplete() {
    return present.complete;
  }

  /** Whether it is a whole answer to which nothing can be added. */
  public boolean isFinished() {
    return present.complete && present.size == 0;
  }

  /** Whether a token that is no end token may come next. */
  public boolean allows(int token) {
    byte[] text = vocabulary.text(token);
    if (text == null || text.length == 0 || text.length > vocabulary.longest()) {
      return false;
    }
    int mark = calls.mark();
    boolean alive = true;
    Readings at = present;
    for (int i = 0; i < text.length && alive; i++) {
      alive = step(at, text[i] & 0xFF, scratch[i + 1]);
      at = scratch[i + 1];
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
      step(present, b & 0xFF, next);
      Readings past = present;
      present = next;
      next = past;
    }
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
    structural.clear();
    int plain = 0;
    for (int i = 0; i < present.size; i++) {
      int node = present.nodes[i];
      int free = grammar.plainDepth[node];
      if (grammar.plainLoops[node]) {
        free = grammar.maximum[node] - present.counters[i];
      } else if (free < TokenVocabulary.MAX_PLAIN_LENGTH) {
        structural.add(node, present.counters[i], present.stacks[i], calls);
      }
      plain = Math.max(plain, free);
    }
    if (plain > 0) {
      vocabulary.allowPlain(plain, mask);
    }
    if (present.complete) {
      vocabulary.allowEnds(mask);
    }
    int mark = calls.mark();
    memo.clear();
    walk(vocabulary.others, present, 0, mask);
    walk(vocabulary.plain, structural, plain, mask);
    calls.release(mark);
  }

  /**
   * Tries all tokens of a trie.
   *
   * @param allowed tokens up to this length in characters are allowed already
   */
  private void walk(TokenTrie trie, Readings from, int allowed, long[] mask) {
    if (from.size == 0) {
      return;
    }
    Readings kept = memo.keep(from);
    path[0] = kept == null ? from : kept;
    int size = trie.size();
    for (int node = 0; node < size; ) {
      int depth = trie.depth[node];
      if (trie.longest[node] <= allowed) {
        node = trie.skip[node];
        continue;
      }
      Readings before = path[depth - 1];
      int unsignedByte = trie.bytes[node] & 0xFF;
      Readings after = before.next.length == 0 ? null : before.next[unsignedByte];
      if (after == null) {
        after = firstStep(before, unsignedByte, scratch[depth]);
      }
      path[depth] = after;
      if (trie.token[node] >= 0 && after.isAlive()) {
        trie.allow(node, mask);
      }
      node = after.size > 0 ? node + 1 : trie.skip[node];
    }
  }

  private Readings firstStep(Readings before, int unsignedByte, Readings room) {
    Readings after = dead;
    if (step(before, unsignedByte, room)) {
      Readings kept = memo.keep(room);
      if (kept == null) {
        return room;
      }
      after = kept;
    }
    if (before.next.length > 0) {
      before.next[unsignedByte] = after;
    }
    return after;
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
