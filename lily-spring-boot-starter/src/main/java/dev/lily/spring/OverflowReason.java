package dev.lily.spring;

import java.util.Locale;

/** Why a request was answered by another model. */
public enum OverflowReason {
  /** The queue was full. */
  BUSY,
  /** The prompt did not fit the context. */
  CONTEXT,
  /** A policy said so. */
  POLICY;

  /** As metadata and meters have it. */
  public String tag() {
    return name().toLowerCase(Locale.ROOT);
  }
}
