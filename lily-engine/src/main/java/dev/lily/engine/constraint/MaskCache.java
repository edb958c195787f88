package dev.lily.engine.constraint;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Masks by where an answer stands in its grammar, shared by all answers; the mask used longest ago
 * makes room for a new one. What lies further away than the longest token can reach is not told
 * apart. Allocates nothing once it is full. One thread.
 */
public final class MaskCache {
  /** A place that takes more to write down is not kept. */
  private static final int MAX_KEY_LENGTH = 4096;

  private static final int NONE = -1;

  private final TokenVocabulary vocabulary;
  private final int capacity;

  private final int[] buckets;
  private final int[] chain;
  private final long[] grammars;
  private final int[] hashes;
  private final int[] @Nullable [] keys;
  private final int[] keyLengths;
  private final long[] @Nullable [] masks;
  private final int[] newer;
  private final int[] older;
  private int newest = NONE;
  private int oldest = NONE;
  private int size;

  private int[] key = new int[64];
  private int keyLength;
  private final long[] uncached;
  private long hits;
  private long misses;

  /**
   * @param budgetBytes most bytes of masks, which has room for at least one
   */
  public MaskCache(TokenVocabulary vocabulary, long budgetBytes) {
    this.vocabulary = vocabulary;
    long fitting = budgetBytes / ((long) vocabulary.maskWords() * Long.BYTES);
    capacity = Math.clamp(fitting, 1, 1 << 16);
    buckets = new int[Integer.highestOneBit(capacity) * 2];
    Arrays.fill(buckets, NONE);
    chain = new int[capacity];
    grammars = new long[capacity];
    hashes = new int[capacity];
    keys = new int[capacity][];
    keyLengths = new int[capacity];
    masks = new long[capacity][];
    newer = new int[capacity];
    older = new int[capacity];
    uncached = new long[vocabulary.maskWords()];
  }

  /**
   * Which tokens may come next; see {@link Matcher}.
   *
   * @return bit {@code t & 63} of word {@code t >> 6} is set if token {@code t} may; to be read
   *     before the next call, not to be changed
   */
  public long[] mask(Matcher matcher) {
    if (!writeKey(matcher)) {
      misses++;
      matcher.fill(uncached);
      return uncached;
    }
    long grammar = matcher.grammar().id;
    int hash = (int) grammar;
    for (int i = 0; i < keyLength; i++) {
      hash = hash * 0x9E3779B1 + key[i];
    }
    hash ^= hash >>> 15;
    int bucket = hash & (buckets.length - 1);
    for (int entry = buckets[bucket]; entry != NONE; entry = chain[entry]) {
      if (hashes[entry] == hash && grammars[entry] == grammar && hasKey(entry)) {
        hits++;
        touch(entry);
        return mask(entry);
      }
    }
    misses++;
    int entry = size < capacity ? size++ : evict();
    long[] mask = mask(entry);
    matcher.fill(mask);
    hashes[entry] = hash;
    grammars[entry] = grammar;
    setKey(entry);
    chain[entry] = buckets[bucket];
    buckets[bucket] = entry;
    addNewest(entry);
    return mask;
  }

  private long[] mask(int entry) {
    long[] mask = masks[entry];
    if (mask == null) {
      mask = new long[vocabulary.maskWords()];
      masks[entry] = mask;
    }
    return mask;
  }

  private boolean hasKey(int entry) {
    int[] known = keys[entry];
    return known != null && Arrays.equals(known, 0, keyLengths[entry], key, 0, keyLength);
  }

  private void setKey(int entry) {
    int[] known = keys[entry];
    if (known == null || known.length < keyLength) {
      known = new int[Math.max(16, keyLength)];
      keys[entry] = known;
    }
    System.arraycopy(key, 0, known, 0, keyLength);
    keyLengths[entry] = keyLength;
  }

  private int evict() {
    int entry = oldest;
    unlink(entry);
    int bucket = hashes[entry] & (buckets.length - 1);
    if (buckets[bucket] == entry) {
      buckets[bucket] = chain[entry];
    } else {
      int at = buckets[bucket];
      while (chain[at] != entry) {
        at = chain[at];
      }
      chain[at] = chain[entry];
    }
    return entry;
  }

  private void touch(int entry) {
    if (entry != newest) {
      unlink(entry);
      addNewest(entry);
    }
  }

  private void unlink(int entry) {
    if (newer[entry] == NONE) {
      newest = older[entry];
    } else {
      older[newer[entry]] = older[entry];
    }
    if (older[entry] == NONE) {
      oldest = newer[entry];
    } else {
      newer[older[entry]] = newer[entry];
    }
  }

  private void addNewest(int entry) {
    newer[entry] = NONE;
    older[entry] = newest;
    if (newest == NONE) {
      oldest = entry;
    } else {
      newer[newest] = entry;
    }
    newest = entry;
  }

  private boolean writeKey(Matcher matcher) {
    Grammar grammar = matcher.grammar();
    Readings present = matcher.present();
    CallStack calls = matcher.calls();
    keyLength = 0;
    put(present.complete ? 1 : 0);
    for (int i = 0; i < present.size && keyLength <= MAX_KEY_LENGTH; i++) {
      putPlace(grammar, present.nodes[i], present.counters[i]);
      put(calls.depth(present.stacks[i]));
      for (int s = present.stacks[i]; s != CallStack.EMPTY; s = calls.below(s)) {
        putPlace(grammar, calls.node(s), calls.counter(s));
      }
    }
    return keyLength <= MAX_KEY_LENGTH;
  }

  private void putPlace(Grammar grammar, int node, int counter) {
    put(node);
    if (!grammar.uniform[node]) {
      put(counter);
      return;
    }
    int far = vocabulary.longest() + 1;
    int missing = Math.clamp((long) grammar.minimum[node] - counter, 0, far);
    int left = Math.clamp((long) grammar.maximum[node] - counter, 0, far);
    put((missing << 16) | left);
  }

  private void put(int value) {
    if (keyLength == key.length) {
      key = Arrays.copyOf(key, 2 * keyLength);
    }
    key[keyLength++] = value;
  }

  /** Masks kept. */
  public int size() {
    return size;
  }

  /** Masks found. */
  public long hits() {
    return hits;
  }

  /** Masks computed. */
  public long misses() {
    return misses;
  }
}
