package dev.lily.engine.tokenizer;

import org.jspecify.annotations.Nullable;

/** Tokenizer files are missing, damaged or of an unsupported kind. */
public final class TokenizerException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public TokenizerException(String message) {
    super(message);
  }

  public TokenizerException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
