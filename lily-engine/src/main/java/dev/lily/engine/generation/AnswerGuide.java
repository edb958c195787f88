package dev.lily.engine.generation;

import dev.lily.engine.constraint.MaskCache;
import dev.lily.engine.constraint.Matcher;
import dev.lily.engine.constraint.TokenVocabulary;
import org.jspecify.annotations.Nullable;

/**
 * Keeps one constrained answer on its way. Made on the caller's thread, then engine thread only.
 */
final class AnswerGuide {
  private static final byte LINE_BREAK = '\n';

  private final TokenVocabulary vocabulary;
  private final Matcher matcher;
  private final int callStart;
  private @Nullable MaskCache masks;
  private boolean begun;

  AnswerGuide(AnswerConstraint constraint) {
    vocabulary = constraint.vocabulary();
    matcher = new Matcher(constraint.grammar(), vocabulary);
    callStart = constraint.textOnlyUnless();
    begun = callStart == AnswerConstraint.UNKNOWN;
  }

  void masks(TokenMasks shared) {
    masks = shared.constrained(vocabulary);
  }

  /** Which tokens may come next; to be used before the next call of any session. */
  long[] mask() {
    if (masks == null) {
      throw new IllegalStateException("The session was not admitted");
    }
    return masks.mask(matcher);
  }

  /**
   * Takes the next token, before the pipeline does.
   *
   * @throws IllegalStateException if the mask did not allow it
   */
  void accept(int token, AnswerPipeline pipeline) {
    try {
      matcher.advance(token);
    } catch (IllegalArgumentException e) {
      throw new IllegalStateException(
          "The back end did not keep to the mask: " + e.getMessage(), e);
    }
    if (!begun && !pipeline.isReasoning() && !vocabulary.isOnly(token, LINE_BREAK)) {
      begun = true;
      if (token != callStart) {
        pipeline.expectNoCalls();
      }
    }
  }

  /** Whether the answer is complete and cannot go on. */
  boolean isFinished() {
    return matcher.isFinished();
  }
}
