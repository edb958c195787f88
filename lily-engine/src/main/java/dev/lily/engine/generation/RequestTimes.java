package dev.lily.engine.generation;

import java.time.Duration;

/** When a request reached what; all in nanoseconds of one clock. Engine thread only. */
final class RequestTimes {
  private final long submitted;
  private boolean isAdmitted;
  private boolean isPromptRead;
  private boolean hasToken;
  private long admitted;
  private long promptRead;
  private long firstToken;
  private long lastToken;

  RequestTimes(long submitted) {
    this.submitted = submitted;
  }

  long sinceSubmission(long now) {
    return now - submitted;
  }

  void admitted(long now) {
    isAdmitted = true;
    admitted = now;
  }

  void promptRead(long now) {
    isPromptRead = true;
    promptRead = now;
  }

  void token(long now) {
    if (!hasToken) {
      hasToken = true;
      firstToken = now;
    }
    lastToken = now;
  }

  Timings timings(long now) {
    return new Timings(
        Duration.ofNanos((isAdmitted ? admitted : now) - submitted),
        Duration.ofNanos(isPromptRead ? promptRead - admitted : 0),
        Duration.ofNanos(hasToken ? firstToken - submitted : 0),
        Duration.ofNanos(hasToken ? lastToken - firstToken : 0));
  }
}
