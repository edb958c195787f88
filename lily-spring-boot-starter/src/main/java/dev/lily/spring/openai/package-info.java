/**
 * Chat completions and the list of models in the words of the OpenAI API, as WebFlux routes over a
 * Lily engine. {@link dev.lily.spring.openai.OpenAiEndpoint} is the entrance. Knows the engine and
 * WebFlux, but neither the chat model nor Spring Boot. Requests are read and answers written with a
 * JSON mapper of its own, so that an application's settings do not change the wire format.
 */
@NullMarked
package dev.lily.spring.openai;

import org.jspecify.annotations.NullMarked;
