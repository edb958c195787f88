package dev.lily.spring.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Advises where the JVM forbids the native access that a back end needs. */
final class NativeAccessFailureAnalyzer extends AbstractFailureAnalyzer<IllegalCallerException> {

  @Override
  protected @Nullable FailureAnalysis analyze(Throwable rootFailure, IllegalCallerException cause) {
    String message = cause.getMessage();
    if (message == null || !message.contains("native access")) {
      return null;
    }
    return new FailureAnalysis(
        "The JVM forbids native access: " + message + ".",
        "Start java with --enable-native-access=ALL-UNNAMED, or give the application's jar the"
            + " manifest entry Enable-Native-Access: ALL-UNNAMED.",
        cause);
  }
}
