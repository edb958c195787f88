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
  private final PassLoad load = new PassLoad();
  private int size;
  private long begun;
  private @Nullable PendingPass pending;

  InFlightPass(int maxSessions) {
    sessions = new Session[maxSessions];
    rows = new int[maxSessions];
    promptRows = new int[maxSessions];
    logitIndex = new int[maxSessions];
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
    add(session, count, count, NO_TOKEN);
  }

  /**
   * @param index which of the plan's logit rows gives the first token
   */
  void addPromptEnd(Session session, int count, int index) {
    add(session, count, count, index);
  }

  void addDecode(Session session, int index) {
    add(session, 1, 0, index);
  }

  private void add(Session session, int numRows, int numPromptRows, int index) {
    sessions[size] = session;
    rows[size] = numRows;
    promptRows[size] = numPromptRows;
    logitIndex[size++] = index;
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

  /** Index of the result that is session {@code i}'s token. */
  int logitIndex(int i) {
    return logitIndex[i];
  }
}
