/**
 * Spring AI's chat model over a Lily engine: options, the mapping of prompts to requests and of
 * events to responses, and overflow to another chat model. Knows the engine and Spring AI, but
 * neither Spring Boot nor the HTTP endpoint.
 */
@NullMarked
package dev.lily.spring.ai;

import org.jspecify.annotations.NullMarked;
