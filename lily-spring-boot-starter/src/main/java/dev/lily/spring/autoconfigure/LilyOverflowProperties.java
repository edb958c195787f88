package dev.lily.spring.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Properties of overflow to another chat model.
 *
 * @param enabled Whether another chat model answers what this process cannot.
 * @param model Bean name of that chat model. By default the only one there is besides Lily's.
 * @param whenQueueFull Whether requests leave if the queue is full, or their turn does not come
 *     within lily.queue-timeout.
 * @param whenPromptTooLong Whether requests leave if the prompt does not fit the context.
 */
@ConfigurationProperties(LilyOverflowProperties.PREFIX)
public record LilyOverflowProperties(
    @DefaultValue("false") boolean enabled,
    @Nullable String model,
    @DefaultValue("true") boolean whenQueueFull,
    @DefaultValue("true") boolean whenPromptTooLong) {

  static final String PREFIX = "lily.overflow";
}
