package dev.lily.engine.tokenizer;

/**
 * A token that is found in text as a whole, before any other step.
 *
 * @param special whether it steers the model and so never appears in answers
 */
record AddedToken(int id, String content, boolean special) {}
