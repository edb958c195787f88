package dev.lily.spring.autoconfigure;

import dev.lily.engine.ModelDoesNotFitException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where the memory plan exceeds the budget. */
final class ModelDoesNotFitFailureAnalyzer
    extends AbstractFailureAnalyzer<ModelDoesNotFitException> {

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, ModelDoesNotFitException cause) {
    return new FailureAnalysis(
        "Lily's model does not fit into memory. " + cause.getMessage(),
        "Lower lily.context-length (%d in this plan) or lily.max-sessions (%d), raise lily.memory-limit if it is set, or use a smaller model."
            .formatted(cause.plan().contextLength(), cause.plan().maxSessions()),
        cause);
  }
}
