/**
 * Constrained decoding: what an answer must look like, compiled to a byte-level pushdown automaton,
 * and for each of its states the tokens that keep a complete answer possible. Knows bytes and token
 * ids; nothing of conversations, tokenizers or sampling.
 */
@NullMarked
package dev.lily.engine.constraint;

import org.jspecify.annotations.NullMarked;
