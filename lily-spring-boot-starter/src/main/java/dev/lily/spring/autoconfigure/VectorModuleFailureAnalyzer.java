package dev.lily.spring.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where vector code was reached without the incubator module. */
final class VectorModuleFailureAnalyzer extends AbstractFailureAnalyzer<NoClassDefFoundError> {

  @Override
  protected @Nullable FailureAnalysis analyze(Throwable rootFailure, NoClassDefFoundError cause) {
    String missing = cause.getMessage();
    if (missing == null || !missing.contains("jdk/incubator/vector")) {
      return null;
    }
    return new FailureAnalysis(
        "Lily's vector kernels need the module jdk.incubator.vector, which this JVM was started"
            + " without.",
        VectorModule.ADVICE,
        cause);
  }
}
