package dev.lily.spring;

/** Why another model answers a request. */
public enum OverflowReason {
  /** The engine's queue is full, or the request waited too long in it. */
  QUEUE_FULL("queue-full"),
  /** The prompt does not fit the context. */
  PROMPT_TOO_LONG("prompt-too-long"),
  /** The application's policy says so. */
  POLICY("policy");

  private final String tag;

  OverflowReason(String tag) {
    this.tag = tag;
  }

  /** As metadata and meters have it. */
  public String tag() {
    return tag;
  }
}
