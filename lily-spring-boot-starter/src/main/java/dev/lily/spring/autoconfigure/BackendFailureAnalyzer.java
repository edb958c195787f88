package dev.lily.spring.autoconfigure;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.UnsupportedKeyValueTypeException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where no back end can run the model, or the wanted one cannot. */
final class BackendFailureAnalyzer extends AbstractFailureAnalyzer<BackendException> {

  @Override
  protected FailureAnalysis analyze(Throwable rootFailure, BackendException cause) {
    if (cause instanceof UnsupportedKeyValueTypeException) {
      return new FailureAnalysis(
          "Lily cannot keep keys and values as configured. " + cause.getMessage(),
          "Set lily.kv-cache to bf16, or lily.backend to cpu, which takes every type.",
          cause);
    }
    String action =
        "Check lily.backend (auto takes the best available back end), lily.cpu.kernels and"
            + " lily.cpu.threads.";
    return new FailureAnalysis(
        "Lily cannot open its back end. " + cause.getMessage(),
        VectorModule.isPresent() ? action : action + " " + VectorModule.ADVICE,
        cause);
  }
}
