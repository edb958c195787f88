package dev.lily.engine.tokenizer;

/**
 * Turns tokens into text as they come, holding back bytes that may still become a character.
 * Special tokens give no text. One per answer; not thread-safe.
 */
public final class StreamingDecoder {
  private final Tokenizer tokenizer;
  private final Utf8Decoder decoder = new Utf8Decoder();

  public StreamingDecoder(Tokenizer tokenizer) {
    this.tokenizer = tokenizer;
  }

  /**
   * Text that became complete with this token; often empty. Bytes that can no longer become a
   * character give one U+FFFD for each maximal invalid part.
   *
   * @throws TokenizerException if no token has this id
   */
  public String accept(int id) {
    return tokenizer.isSpecial(id) ? "" : decoder.decode(tokenizer.bytes(id));
  }

  /**
   * What is left at the end: U+FFFD if a character stayed incomplete, else empty. The decoder can
   * then take another answer.
   */
  public String finish() {
    return decoder.finish();
  }
}
