package dev.lily.engine.tokenizer;

import java.nio.file.Path;
import java.util.OptionalInt;

/** Byte-level BPE of a checkpoint's {@code tokenizer.json}. Immutable and thread-safe. */
public final class Tokenizer {

  private Tokenizer() {}

  /**
   * Reads {@code tokenizer.json} and, where present, the added tokens of {@code
   * tokenizer_config.json}.
   *
   * @throws TokenizerException if they are missing, damaged or of another kind
   */
  public static Tokenizer read(Path directory) {
    throw new UnsupportedOperationException(directory.toString());
  }

  /** Encodes text; added tokens are recognised everywhere. */
  public int[] encode(String text) {
    return encode(text, new int[0]);
  }

  /**
   * Encodes text in which some ranges were typed by somebody else.
   *
   * @param literalRanges pairs {@code start, end} of char offsets, ascending; an added token that
   *     overlaps such a range is ordinary text there, so that user text never becomes a control
   *     token
   */
  public int[] encode(String text, int[] literalRanges) {
    throw new UnsupportedOperationException();
  }

  /** The text of ids, with U+FFFD for invalid UTF-8. Added tokens become their literal text. */
  public String decode(int[] ids) {
    throw new UnsupportedOperationException();
  }

  /** UTF-8 bytes of a token. Not copied: do not change. */
  public byte[] bytes(int id) {
    throw new UnsupportedOperationException();
  }

  /** Whether a token is flagged special; such tokens never appear in answers. */
  public boolean isSpecial(int id) {
    throw new UnsupportedOperationException();
  }

  /** Id of an added token by its literal text. */
  public OptionalInt addedToken(String text) {
    throw new UnsupportedOperationException();
  }

  /** One more than the largest id in use. */
  public int vocabularySize() {
    throw new UnsupportedOperationException();
  }
}
