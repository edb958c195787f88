/**
 * Spring Boot's auto-configuration for Lily: properties under {@code lily.*}, the engine and its
 * life cycle, the chat model, actuator parts and failure analysis. Nothing else depends on it.
 */
@NullMarked
package dev.lily.spring.autoconfigure;

import org.jspecify.annotations.NullMarked;
