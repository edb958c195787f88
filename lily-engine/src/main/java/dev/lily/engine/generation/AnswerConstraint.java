package dev.lily.engine.generation;

import dev.lily.engine.constraint.Grammar;
import dev.lily.engine.constraint.TokenVocabulary;

/**
 * What the tokens of one answer must follow.
 *
 * @param textOnlyUnless the token that begins a tool call; an answer that begins with any other is
 *     text to its end. -1 if that cannot be told
 */
public record AnswerConstraint(Grammar grammar, TokenVocabulary vocabulary, int textOnlyUnless) {
  /** The beginning of an answer tells nothing about the rest. */
  static final int UNKNOWN = -1;
}
