package dev.lily.engine.generation;

import dev.lily.engine.constraint.MaskCache;
import dev.lily.engine.constraint.TokenVocabulary;
import org.jspecify.annotations.Nullable;

/** The token masks that sessions share. Engine thread only. */
final class TokenMasks {
  /** Two thousand masks of a vocabulary of 250,000 tokens. */
  private static final long CACHE_BYTES = 64L << 20;

  private final long[] withoutEndTokens;
  private @Nullable MaskCache constrained;

  TokenMasks(StopTokens stopTokens, int vocabularySize) {
    withoutEndTokens = stopTokens.maskOfOthers(vocabularySize);
  }

  /** For sessions that must not end yet. */
  long[] withoutEndTokens() {
    return withoutEndTokens;
  }

  /**
   * For constrained answers.
   *
   * @param vocabulary the same at each call
   */
  MaskCache constrained(TokenVocabulary vocabulary) {
    if (constrained == null) {
      constrained = new MaskCache(vocabulary, CACHE_BYTES);
    }
    return constrained;
  }
}
