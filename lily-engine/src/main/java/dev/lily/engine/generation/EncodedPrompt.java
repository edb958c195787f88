package dev.lily.engine.generation;

/**
 * A prompt as the model reads it.
 *
 * @param tokens ids, at least one; handed over, not copied
 * @param thinking whether the answer starts inside the reasoning
 */
public record EncodedPrompt(int[] tokens, boolean thinking) {}
