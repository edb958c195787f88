package dev.lily.spring.openai;

import dev.lily.engine.tokenizer.Tokenizer;

/**
 * The loaded model.
 *
 * @param contextLength most tokens of a prompt and its answer
 */
record ServedModel(String name, int contextLength, Tokenizer tokenizer) {}
