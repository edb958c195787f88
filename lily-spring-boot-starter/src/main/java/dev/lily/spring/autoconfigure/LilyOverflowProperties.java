package dev.lily.spring.autoconfigure;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Properties of overflow to another chat model.
 *
 * @param enabled Whether another chat model answers what this one cannot.
 * @param model Bean name of that chat model. Required if overflow is enabled.
 * @param whenBusy Whether requests leave if the queue is full.
 * @param whenTooLong Whether requests leave if the prompt does not fit the context.
 */
@ConfigurationProperties(LilyOverflowProperties.PREFIX)
public record LilyOverflowProperties(
    @DefaultValue("false") boolean enabled,
    @Nullable String model,
    @DefaultValue("true") boolean whenBusy,
    @DefaultValue("true") boolean whenTooLong) {

  static final String PREFIX = "lily.overflow";
}
