package dev.lily.engine.generation;

import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.model.LanguageModel;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What all sessions' drafts share: how many rows a session may have, what rows cost as passes show,
 * and an account of what drafts have cost and given altogether. Engine thread only.
 */
final class Speculation {
  /** Tokens that drafting may cost at the start, over all sessions. */
  private static final double GRANT = 8;

  /** The same for one session: the least with which it can try a token, whatever a row costs. */
  private static final double SESSION_GRANT = 2 * PassTimes.MAX_ROW_COST;

  private final int draftTokens;
  private final StopTokens stopTokens;
  private final Function<int[], DraftSource> sources;
  private final Counters counters;
  private final PassTimes times;
  private final DraftGate gate;
  private final double limit;
  private final Passes passes;
  private int sessions;

  /**
   * @param places most sessions running
   * @param sources makes a source for a prompt
   */
  Speculation(
      SpeculationOptions options,
      LanguageModel model,
      int places,
      StopTokens stopTokens,
      Passes passes,
      Function<int[], DraftSource> sources,
      Counters counters) {
    this.stopTokens = stopTokens;
    this.passes = passes;
    this.sources = sources;
    this.counters = counters;
    PassLimits limits = model.limits();
    int room = Math.min(limits.maxRows(), limits.maxLogitRows()) / places - 1;
    draftTokens = Math.min(options.rowsPerSession() - 1, room);
    if (isOn()) {
      model.states().setAsideSpares(options.spareSlots(places));
    }
    times = new PassTimes(places);
    limit = draftTokens + SESSION_GRANT;
    gate = new DraftGate(GRANT, Math.max(GRANT, limit));
  }

  boolean isOn() {
    return draftTokens > 0;
  }

  /** Drafts of a session; {@code null} if there are to be none. */
  @Nullable Drafts drafts(int[] prompt) {
    return isOn()
        ? new Drafts(this, sources.apply(prompt), new DraftGate(SESSION_GRANT, limit), draftTokens)
        : null;
  }

  boolean isEnd(int token) {
    return stopTokens.contains(token);
  }

  /** A pass is being put together for so many sessions that write. */
  void begin(int writing) {
    sessions = writing;
  }

  /** Passes that were submitted so far. */
  long passesSubmitted() {
    return passes.submitted();
  }

  /** A pass has run. */
  void ran(InFlightPass pass, long nanos) {
    PassLoad load = pass.load();
    if (isOn() && load.promptRows() == 0 && pass.size() > 0) {
      times.ran(pass.size(), load.otherRows() - pass.size(), nanos);
    }
  }

  /**
   * How many tokens a session may draft, by its own account and by that of all.
   *
   * @param replayed rows that are computed again if the drafts are wrong, beside them
   * @param isProven whether its last drafts were right
   */
  int affordable(DraftGate session, int replayed, boolean isProven) {
    if (!times.isKnown(sessions)) {
      return 0;
    }
    double cost = times.rowCost(sessions);
    return Math.min(
        session.affordable(cost, replayed, isProven), gate.affordable(cost, replayed, isProven));
  }

  /** A session has had a pass and so many tokens of it. */
  void passed(DraftGate session, int furtherRows, int tokens, int drafted) {
    double cost = furtherRows == 0 ? 0 : times.rowCost(sessions);
    session.passed(furtherRows, tokens, cost);
    gate.passed(furtherRows, tokens, cost);
    counters.countDrafted(drafted, drafted == 0 ? 0 : tokens - 1);
  }

  /** Pays from both accounts. */
  void pay(DraftGate session, double tokens) {
    session.pay(tokens);
    gate.pay(tokens);
  }

  /** Tokens that a further row costs at present. */
  double rowCost() {
    return times.isKnown(sessions) ? times.rowCost(sessions) : Double.NaN;
  }
}
