package dev.lily.engine.generation;

import java.util.List;

/**
 * A generated token with log-probabilities.
 *
 * @param id token id
 * @param bytes its UTF-8 bytes, possibly part of a character; not copied
 * @param logprob natural log-probability under the model (before sampling options)
 * @param top likeliest alternatives, likeliest first, each with an empty {@code top}
 */
public record TokenLogprob(int id, byte[] bytes, float logprob, List<TokenLogprob> top) {}
