package dev.lily.engine.constraint;

/**
 * The insides of JSON strings in their shortest form whose number of scalar values is within
 * bounds. What is not such an inside may be accepted too; intersect with one.
 */
final class StringLength implements ByteAutomaton {
  private static final int PHASES = 6;

  private final int min;
  private final int max;
  private final boolean escapes;

  /**
   * @param escapes whether a backslash begins an escape, as in JSON
   * @param max {@link GrammarBuilder#UNBOUNDED} for no limit
   */
  StringLength(boolean escapes, int min, int max) {
    this.escapes = escapes;
    this.min = min;
    this.max = max;
  }

  // A state is count * PHASES + phase: 0 between characters, 1 behind a backslash, 2 to 5 in \\u.

  @Override
  public int start() {
    return 0;
  }

  @Override
  public int step(int state, int b) {
    int count = state / PHASES;
    int phase = state % PHASES;
    if (phase == 1) {
      return count * PHASES + (b == 'u' ? 2 : 0);
    }
    if (phase > 1) {
      return count * PHASES + (phase + 1) % PHASES;
    }
    if ((b & 0xC0) == 0x80) {
      return state;
    }
    if (count == max) {
      return DEAD;
    }
    int next = max == GrammarBuilder.UNBOUNDED ? Math.min(count + 1, min) : count + 1;
    return next * PHASES + (escapes && b == '\\' ? 1 : 0);
  }

  @Override
  public boolean accepts(int state) {
    return state / PHASES >= min;
  }
}
