package dev.lily.engine.generation;

import dev.lily.engine.backend.PendingPass;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Who takes part in a pass, and which of its results are whose. Reused from pass to pass. */
final class InFlightPass {
  private static final int NO_TOKEN = -1;

  private final @Nullable Session[] sessions;
  private final int[] rows;
  private final int[] promptRows;
  private final int[] logitIndex;
  private final int[] numTokens;
  private int size;
  private final PassLoad load = new PassLoad();
  private long begun;
  private @Nullable PendingPass pending;

  InFlightPass(int maxSessions) {
    sessions = new Session[maxSessions];
    rows = new int[maxSessions];
    promptRows = new int[maxSessions];
    logitIndex = new int[maxSessions];
    numTokens = new int[maxSessions];
  }

  void clear() {
    Arrays.fill(sessions, 0, size, null);
    size = 0;
    pending = null;
  }

  /**
   * Notes when work on it begins.
   *
   * @param now on the scale of the scheduler's clock
   */
  void begin(long now) {
    begun = now;
  }

  long begun() {
    return begun;
  }

  PassLoad load() {
    return load;
  }

  void addPrompt(Session session, int count) {
    add(session, count, count, NO_TOKEN, 0);
  }

  /**
   * @param index which of the plan's logit rows gives the first token
   */
  void addPromptEnd(Session session, int count, int index) {
    add(session, count, count, index, 1);
  }

  /**
   * @param index of the first of {@code tokens} logit rows
   */
  void addDecode(Session session, int count, int index, int tokens) {
    add(session, count, 0, index, tokens);
  }

  private void add(Session session, int count, int numPromptRows, int index, int tokens) {
    sessions[size] = session;
    rows[size] = count;
    promptRows[size] = numPromptRows;
    logitIndex[size] = index;
    numTokens[size++] = tokens;
  }

  void submitted(PendingPass pass) {
    pending = pass;
    for (int i = 0; i < size; i++) {
      session(i).passSubmitted(rows[i]);
    }
  }

  PendingPass pending() {
    if (pending == null) {
      throw new IllegalStateException("This pass was not submitted");
    }
    return pending;
  }

  int size() {
    return size;
  }

  Session session(int i) {
    Session session = sessions[i];
    if (session == null) {
      throw new IndexOutOfBoundsException(i);
    }
    return session;
  }

  /** Prompt tokens that session {@code i} had in the pass. */
  int promptRows(int i) {
    return promptRows[i];
  }

  boolean hasToken(int i) {
    return logitIndex[i] != NO_TOKEN;
  }

  /** Tokens that were sampled for session {@code i}. */
  int numTokens(int i) {
    return numTokens[i];
  }

  /** Index of the result that is session {@code i}'s first token. */
  int logitIndex(int i) {
    return logitIndex[i];
  }
}
