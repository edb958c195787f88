package dev.lily.engine.generation;

/**
 * Says how much drafting may cost: an account in tokens, that is in the time in which a token is
 * written without drafts. Rows beyond a session's one are paid from it, tokens beyond one are paid
 * in, and so is {@link #ALLOWANCE} of every token. It starts with a little, so that a first draft
 * can be tried, and holds no more than a limit, so that what was gained long ago is not gambled
 * away. Where drafts are seldom right it so runs dry, and fills for another try only after many
 * tokens.
 *
 * <p>What an unproven draft may lose has to be there before. One behind a draft that was right may
 * be as long as it likes while anything is there: a further row costs less in a long draft, which
 * short ones could not show. So whatever the drafts are, all of them together cost no more than the
 * grant, {@link #ALLOWANCE} of the time and one draft.
 */
final class DraftGate {
  /** The share of its time that a session may lose by wrong drafts. */
  static final double ALLOWANCE = 0.02;

  private final double limit;
  private double credit;

  /**
   * @param grant tokens to start with
   * @param limit most tokens that it holds
   */
  DraftGate(double grant, double limit) {
    this.limit = limit;
    credit = grant;
  }

  /**
   * How many tokens may be drafted now.
   *
   * @param rowCost tokens that a further row of a pass costs
   * @param replayed rows that are computed again if the drafts are wrong, beside them
   * @param isProven whether the last drafts were right
   */
  int affordable(double rowCost, int replayed, boolean isProven) {
    if (credit <= 0) {
      return 0;
    }
    if (isProven) {
      return SpeculationOptions.MAX_DRAFT_TOKENS;
    }
    return (int) Math.clamp(credit / rowCost - replayed, 0, SpeculationOptions.MAX_DRAFT_TOKENS);
  }

  /**
   * A session has had a pass.
   *
   * @param furtherRows its rows beyond one
   * @param tokens that the pass gave it, 0 if it ended otherwise
   * @param rowCost tokens that a further row costs
   */
  void passed(int furtherRows, int tokens, double rowCost) {
    double gained = Math.max(0, tokens - 1) + ALLOWANCE * tokens;
    credit = Math.min(limit, credit + gained - furtherRows * rowCost);
  }

  /** Pays for something else. */
  void pay(double tokens) {
    credit -= tokens;
  }

  double credit() {
    return credit;
  }
}
