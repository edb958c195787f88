package dev.lily.engine.generation;

import dev.lily.engine.backend.PendingPass;

/**
 * The drafts of one session. A pass with drafts has the tokens of the answer that the state has not
 * seen, then the drafts; a token is sampled behind the last of the former and behind each draft. As
 * long as they equal the drafts they are the answer; the first that differs is so too, and what
 * comes behind it has to be undone. As the recurrent state cannot be cut back, it returns to where
 * the pass began, and the next pass begins with the tokens that were right. Engine thread only.
 */
final class Drafts {
  /**
   * What it costs, in tokens, to let the device wait for a token that is on its way. A guess on the
   * safe side, which concerns devices that work ahead.
   */
  private static final double WAIT_COST = 0.1;

  private static final long NOT_WAITING = -1;

  private static final int FIRST_LENGTH = 2;

  private final Speculation speculation;
  private final DraftSource source;
  private final DraftGate gate;
  private final int most;

  /** Tokens that the state has not seen, then drafts. */
  private final int[] rows;

  private final int[] chosen;
  private final int[] scratch = new int[1];
  private int numChosen;
  private int numReplayed;
  private int numDrafted;
  private int lastToken;
  private int length = FIRST_LENGTH;
  private long waitingSince = NOT_WAITING;
  private long drafted;
  private long accepted;

  Drafts(Speculation speculation, DraftSource source, DraftGate gate, int most) {
    this.speculation = speculation;
    this.source = source;
    this.gate = gate;
    this.most = most;
    rows = new int[most + 1];
    chosen = new int[most + 1];
  }

  /** Notes the next token of the answer. */
  void add(int token) {
    lastToken = token;
    source.add(token);
  }

  /**
   * Whether the next row may be submitted although the token before it has not been read: nothing
   * has to be replayed, and nothing suggests that a draft will follow that token.
   */
  boolean mayRunAhead() {
    boolean waits =
        numDrafted > 0 || numReplayed > 0 || (allowed(2) > 0 && source.draft(scratch, 0, 1) > 0);
    if (waits && waitingSince == NOT_WAITING) {
      waitingSince = speculation.passesSubmitted();
    }
    return !waits;
  }

  /**
   * Drafts for the next pass. All tokens so far have been read.
   *
   * @param mostTokens how many tokens the pass may give
   * @return rows of the pass, the last {@link #numDrafted} of which are drafts
   */
  int draft(int mostTokens) {
    payForWaiting();
    rows[numReplayed] = lastToken;
    int allowed = allowed(mostTokens);
    numDrafted = allowed > 0 ? beforeEnd(source.draft(rows, numReplayed + 1, allowed)) : 0;
    return numRows();
  }

  /** A pass that others had meanwhile would have given this session a token, too. */
  private void payForWaiting() {
    if (waitingSince != NOT_WAITING) {
      speculation.pay(gate, speculation.passesSubmitted() > waitingSince ? 1 : WAIT_COST);
      waitingSince = NOT_WAITING;
    }
  }

  /** Behind an end token there is no answer, so that its row would be for nothing. */
  private int beforeEnd(int drafted) {
    for (int i = 0; i < drafted; i++) {
      if (speculation.isEnd(rows[numReplayed + 1 + i])) {
        return i;
      }
    }
    return drafted;
  }

  private int allowed(int mostTokens) {
    int room = Math.min(Math.min(length, most - numReplayed), mostTokens - 1);
    if (room < 1) {
      return 0;
    }
    boolean isProven = length > FIRST_LENGTH;
    return Math.min(room, speculation.affordable(gate, numReplayed + 1, isProven));
  }

  private int numRows() {
    return numReplayed + 1 + numDrafted;
  }

  /** Tokens of the next pass. */
  int[] rows() {
    return rows;
  }

  /** How many of them are drafts; as many samples as that follow the first. */
  int numDrafted() {
    return numDrafted;
  }

  /** Whether the {@code index}-th sample of the pass was made behind tokens of the answer only. */
  boolean isRight(int index) {
    return index == 0 || (index <= numDrafted && rows[numReplayed + index] == lastToken);
  }

  /**
   * The samples of a pass have been read.
   *
   * @param tokens those that belong to the answer
   * @return whether the state has seen more than the answer and has to return
   */
  boolean passed(int tokens) {
    int right = tokens - 1;
    boolean returns = right < numDrafted;
    speculation.passed(gate, numRows() - 1, tokens, numDrafted);
    if (numDrafted > 0) {
      drafted += numDrafted;
      accepted += right;
      length = returns ? right + 1 : Math.min(2 * length, most);
    }
    numReplayed = returns ? numReplayed + 1 + right : 0;
    numDrafted = 0;
    return returns;
  }

  /** The samples of a pass, as {@code DeviceState.rewindSampling} takes them. */
  int[] chosen(PendingPass pass, int index, int count) {
    numChosen = 0;
    for (int i = 0; i < count; i++) {
      if (pass.token(index + i) >= 0) { // behind a wrong draft there may be none
        chosen[numChosen++] = pass.token(index + i);
      }
    }
    return chosen;
  }

  int numChosen() {
    return numChosen;
  }

  @Override
  public String toString() {
    return "%d of %d drafted tokens were right, a row cost %.2f tokens, %.1f tokens of credit are left"
        .formatted(accepted, drafted, speculation.rowCost(), gate.credit());
  }
}
