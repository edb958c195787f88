package dev.lily.engine.sampling;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * What sampling knows of one sequence: its parameters, how many tokens were chosen, which tokens
 * occurred, and the mask. Made once per sampling slot and reused; nothing is allocated after
 * construction. One thread at a time.
 */
public final class SamplerState {
  private static final SamplingParameters OFF = SamplingParameters.of(SamplingOptions.NONE, 0, -1);

  private final int vocabularySize;
  private SamplingParameters parameters = OFF;
  private long step;
  private int lastToken = -1;

  /** How often each token was generated. */
  private final int[] counts;

  /** Bit per token: in {@link #touched}. */
  private final long[] seen;

  /** Tokens that a penalty may change, each once: generated, and the prompt's when it matters. */
  private final int[] touched;

  private int numTouched;

  /** How many of them the prompt touched. */
  private int numOfPrompt;

  private final long[] mask;
  private boolean masked;

  /**
   * @param vocabularySize number of logits, at most {@value Weights#MAX_VOCABULARY_SIZE}
   */
  public SamplerState(int vocabularySize) {
    Weights.checkVocabularySize(vocabularySize);
    this.vocabularySize = vocabularySize;
    counts = new int[vocabularySize];
    touched = new int[vocabularySize];
    seen = new long[(vocabularySize + 63) >> 6];
    mask = new long[seen.length];
  }

  /**
   * Starts a sequence: step 0, no generated token, no mask.
   *
   * @param promptTokens tokens that the repetition penalty counts as seen; looked at only if it is
   *     on, not kept
   * @throws InvalidSamplingException if a token with a bias is outside the vocabulary
   * @throws IllegalArgumentException if a prompt token that counts is outside the vocabulary
   */
  public void begin(SamplingParameters parameters, int[] promptTokens) {
    int[] biased = parameters.biasTokens();
    if (biased.length > 0 && biased[biased.length - 1] >= vocabularySize) {
      throw new InvalidSamplingException(
          "logitBias",
          "logitBias names token id "
              + biased[biased.length - 1]
              + "; the model's ids end at "
              + (vocabularySize - 1));
    }
    boolean promptCounts = parameters.repetitionPenalty() != 1;
    if (promptCounts) {
      for (int token : promptTokens) {
        checkToken("Prompt", token);
      }
    }
    for (int i = 0; i < numTouched; i++) {
      counts[touched[i]] = 0;
      seen[touched[i] >> 6] = 0;
    }
    numTouched = 0;
    this.parameters = parameters;
    step = 0;
    lastToken = -1;
    masked = false;
    if (promptCounts) {
      for (int token : promptTokens) {
        touch(token);
      }
    }
    numOfPrompt = numTouched;
  }

  /**
   * Restricts the next samples until it is called again.
   *
   * @param allowed bit {@code t & 63} of word {@code t >> 6} allows token {@code t}, one bit per
   *     token of the vocabulary, bits beyond it ignored; {@code null} allows all. Copied.
   */
  public void mask(long @Nullable [] allowed) {
    if (allowed != null) {
      if (allowed.length != mask.length) {
        throw new IllegalArgumentException(
            "Token mask has "
                + allowed.length
                + " words; a vocabulary of "
                + vocabularySize
                + " needs "
                + mask.length);
      }
      System.arraycopy(allowed, 0, mask, 0, mask.length);
    }
    masked = allowed != null;
  }

  /**
   * Records the next token of the sequence and advances the step. {@link Sampler#sample} does this
   * itself; call it only for a token that was chosen elsewhere.
   */
  public void accept(int token) {
    checkToken("Generated", token);
    touch(token);
    counts[token]++;
    lastToken = token;
    step++;
  }

  /**
   * Takes back the tokens recorded last: counts, step and last token are again what they were when
   * those that stay had been recorded. Parameters and mask stay as they are.
   *
   * @param tokens the last {@code count} that were recorded, in order
   * @param kept how many of them stay, at least 1
   */
  public void rewind(int[] tokens, int count, int kept) {
    if (kept < 1 || kept > count || count > step) {
      throw new IllegalArgumentException(
          "Keeping %d of the last %d tokens of %d; at least 1 must stay"
              .formatted(kept, count, step));
    }
    for (int i = count - 1; i >= kept; i--) {
      int token = tokens[i];
      checkToken("Generated", token);
      if (--counts[token] == 0 && numTouched > numOfPrompt && touched[numTouched - 1] == token) {
        numTouched--;
        seen[token >> 6] &= ~(1L << token);
      }
    }
    lastToken = tokens[kept - 1];
    step -= count - kept;
  }

  private void touch(int token) {
    long bit = 1L << token;
    if ((seen[token >> 6] & bit) == 0) {
      seen[token >> 6] |= bit;
      touched[numTouched++] = token;
    }
  }

  private void checkToken(String what, int token) {
    if (token < 0 || token >= vocabularySize) {
      throw new IllegalArgumentException(
          what + " token id is " + token + "; ids run from 0 to " + (vocabularySize - 1));
    }
  }

  public int vocabularySize() {
    return vocabularySize;
  }

  /** Bytes held. */
  public long bytes() {
    return (long) vocabularySize * 2 * Integer.BYTES + (long) mask.length * 2 * Long.BYTES;
  }

  public SamplingParameters parameters() {
    return parameters;
  }

  /** Number of tokens generated since {@link #begin}. */
  public long step() {
    return step;
  }

  /** How often a token was generated since {@link #begin}. */
  public int count(int token) {
    return counts[token];
  }

  /** The token generated last, or -1. */
  public int lastToken() {
    return lastToken;
  }

  /** Whether a mask is set. */
  public boolean isMasked() {
    return masked;
  }

  /** Number of allowed tokens. */
  int numAllowed() {
    if (!masked) {
      return vocabularySize;
    }
    int numAllowed = 0;
    for (int word = 0; word < mask.length; word++) {
      numAllowed += Long.bitCount(mask[word] & wordBits(word));
    }
    return numAllowed;
  }

  /** Sets the logit of each disallowed token to negative infinity. */
  void applyMask(float[] logits) {
    if (!masked) {
      return;
    }
    for (int word = 0; word < mask.length; word++) {
      long disallowed = ~mask[word] & wordBits(word);
      int first = word << 6;
      if (disallowed == -1L) {
        Arrays.fill(logits, first, first + 64, Float.NEGATIVE_INFINITY);
      } else {
        for (; disallowed != 0; disallowed &= disallowed - 1) {
          logits[first + Long.numberOfTrailingZeros(disallowed)] = Float.NEGATIVE_INFINITY;
        }
      }
    }
  }

  private long wordBits(int word) {
    int bits = vocabularySize - (word << 6);
    return bits >= 64 ? -1L : (1L << bits) - 1;
  }

  int numTouched() {
    return numTouched;
  }

  int touched(int index) {
    return touched[index];
  }
}
