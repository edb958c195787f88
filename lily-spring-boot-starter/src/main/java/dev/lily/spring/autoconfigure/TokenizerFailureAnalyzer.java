package dev.lily.spring.autoconfigure;

import dev.lily.engine.tokenizer.TokenizerException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where the model directory's tokenizer cannot be used. */
final class TokenizerFailureAnalyzer extends AbstractFailureAnalyzer<TokenizerException> {

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, TokenizerException cause) {
    return new FailureAnalysis(
        "Lily cannot read its model's tokenizer. " + cause.getMessage(),
        "Check that the directory of lily.model has the tokenizer.json that belongs to its weights;"
            + " download it again if it is damaged.",
        cause);
  }
}
