package dev.lily.engine.generation;

/**
 * Speculation: whether the tokens that probably come next are put into a pass before the model has
 * said them, so that a pass gives several tokens where they were right. It changes no answer.
 *
 * @param mode where drafts come from
 * @param draftTokens most tokens drafted for one pass of a session
 */
public record SpeculationOptions(Mode mode, int draftTokens) {
  /** Most tokens drafted when nothing else is said. */
  public static final int DEFAULT_DRAFT_TOKENS = 8;

  /** The most that may be asked for: beyond it a pass costs more than any draft is worth. */
  public static final int MAX_DRAFT_TOKENS = 64;

  /** No drafts. */
  public static final SpeculationOptions OFF =
      new SpeculationOptions(Mode.OFF, DEFAULT_DRAFT_TOKENS);

  /** Where drafts come from. */
  public enum Mode {
    /** There are none. */
    OFF,
    /** What followed when the last tokens occurred before, in the prompt or the answer. */
    PROMPT_LOOKUP
  }

  public SpeculationOptions {
    if (draftTokens < 1 || draftTokens > MAX_DRAFT_TOKENS) {
      throw new IllegalArgumentException(
          "draftTokens is %d; it must be from 1 to %d".formatted(draftTokens, MAX_DRAFT_TOKENS));
    }
  }

  /** Rows and logits that a session may need in a pass. */
  public int rowsPerSession() {
    return mode == Mode.OFF ? 1 : 1 + draftTokens;
  }

  /** Recurrent slots that so many sessions need beside their own. */
  public int spareSlots(int sessions) {
    return mode == Mode.OFF ? 0 : sessions;
  }
}
