package dev.lily.engine.generation;

import dev.lily.engine.generation.disk.DiskEntry;
import dev.lily.engine.model.SequenceState;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What one request takes from the prefix cache and leaves there. A cache that fails costs a
 * snapshot, never the request. Engine thread only.
 */
final class CachedPrefix {
  private static final Logger log = LoggerFactory.getLogger(CachedPrefix.class);

  private final PrefixCache cache;
  private final Ticket ticket;
  private final int[] prompt;
  private final int[] positions;
  private @Nullable DiskEntry awaited;
  private int next;
  private int[] tokens;
  private int size;

  CachedPrefix(PrefixCache cache, Ticket ticket, int[] prompt) {
    this.cache = cache;
    this.ticket = ticket;
    this.prompt = prompt;
    positions = cache.positions(prompt);
    tokens = prompt;
    size = prompt.length;
  }

  /** Brings an empty sequence into the prompt; the tokens that need not be read. */
  int restore(SequenceState state) {
    int cached = cache.restore(state, prompt, ticket, awaited);
    skipTo(cached);
    return cached;
  }

  /**
   * Whether to wait before {@link #restore}: another request is about to keep a state that this one
   * can begin with.
   */
  boolean gainsFrom(CachedPrefix other) {
    if (other.next == other.positions.length) {
      return false;
    }
    int mismatch = Arrays.mismatch(prompt, other.prompt);
    int common = mismatch < 0 ? prompt.length : mismatch;
    int position = other.positions[other.next];
    return position <= Math.min(common, prompt.length - 1) && cache.depth(prompt) < position;
  }

  /** Whether to wait before {@link #restore} for a state that is being copied or read from disk. */
  boolean isComing() {
    return cache.isBeingCopied(prompt) || isLoading();
  }

  /** What was read from disk and has left memory again before its use is not read again. */
  private boolean isLoading() {
    try {
      DiskEntry entry = cache.onDisk(prompt);
      if (entry == null || (entry.equals(awaited) && !cache.isLoading(entry))) {
        return false;
      }
      boolean loading = cache.load(entry, prompt);
      if (cache.isLoading(entry)) {
        awaited = entry;
      }
      return loading;
    } catch (Throwable e) {
      log.warn("Request {}: what is on disk of its prompt could not be read", ticket, e);
      return false;
    }
  }

  /** How many prompt tokens to submit from a position on, so that the state can be kept. */
  int rows(int from, int most) {
    return next < positions.length ? Math.min(most, positions[next] - from) : most;
  }

  /** The state has advanced within the prompt. */
  void advanced(SequenceState state) {
    if (next < positions.length && state.position() == positions[next]) {
      keep(state);
    }
    skipTo(state.position());
  }

  private void skipTo(int position) {
    while (next < positions.length && positions[next] <= position) {
      next++;
    }
  }

  /** Notes a token of the answer. */
  void add(int token) {
    if (cache.isOff()) {
      return;
    }
    if (size == tokens.length) {
      tokens = Arrays.copyOf(tokens, size + Math.max(64, size / 2));
    }
    tokens[size++] = token;
  }

  /** The answer is complete, and a later prompt may repeat it. */
  void answered(SequenceState state) {
    if (state.position() <= size) {
      keep(state);
    }
  }

  private void keep(SequenceState state) {
    try {
      cache.keep(state, tokens);
    } catch (Throwable e) {
      log.warn("Request {}: its state at {} could not be cached", ticket, state.position(), e);
    }
  }
}
