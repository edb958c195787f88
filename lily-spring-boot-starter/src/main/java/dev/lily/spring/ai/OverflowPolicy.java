package dev.lily.spring.ai;

import org.springframework.ai.chat.prompt.Prompt;

/**
 * Decides by the prompt alone, before any work, which requests another model answers. Not asked for
 * requests marked as local-only. Thread-safe; must not block.
 */
@FunctionalInterface
public interface OverflowPolicy {
  /** Whether another model is to answer. */
  boolean sendsAway(Prompt prompt);
}
