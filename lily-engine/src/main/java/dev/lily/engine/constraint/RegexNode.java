package dev.lily.engine.constraint;

import java.util.List;

/** A regular expression, parsed. */
sealed interface RegexNode {
  RegexNode EMPTY = new Sequence(List.of());

  /** Any text of scalar values. */
  RegexNode ANYTHING = new Repeat(new OneOf(CodePoints.ALL), 0, Repeat.UNBOUNDED);

  /** One scalar value. */
  record OneOf(CodePoints set) implements RegexNode {}

  /** One after the other. */
  record Sequence(List<RegexNode> parts) implements RegexNode {}

  /** One of several. */
  record Choice(List<RegexNode> branches) implements RegexNode {}

  /**
   * Several times.
   *
   * @param max {@link #UNBOUNDED} for no limit
   */
  record Repeat(RegexNode part, int min, int max) implements RegexNode {
    static final int UNBOUNDED = Integer.MAX_VALUE;
  }

  /** {@code ^} or {@code $}. */
  record Anchor(boolean start) implements RegexNode {}
}
