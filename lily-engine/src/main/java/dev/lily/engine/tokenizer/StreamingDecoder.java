package dev.lily.engine.tokenizer;

/**
 * Turns tokens into text as they come, holding back bytes that may still become a character.
 * Special tokens give no text. One per answer; not thread-safe.
 */
public final class StreamingDecoder {

  public StreamingDecoder(Tokenizer tokenizer) {
    throw new UnsupportedOperationException();
  }

  /** Text that became complete with this token; often empty. */
  public String accept(int id) {
    throw new UnsupportedOperationException();
  }

  /** What is left at the end: U+FFFD if a character stayed incomplete, else empty. */
  public String finish() {
    throw new UnsupportedOperationException();
  }
}
