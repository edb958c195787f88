package dev.lily.engine.generation;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.LanguageModel;
import dev.lily.engine.model.SequenceState;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the sessions, a turn at a time: ends what is cancelled or late, takes in what fits,
 * submits one pass with a row of every session that is writing and a slice of prompts, and hands
 * out the tokens of the oldest pass. Where two passes may be in flight, a pass is submitted before
 * the tokens of the one before it are read; rows of sessions that turn out to have ended are
 * ignored. Engine thread only.
 */
final class Batcher {
  private static final Logger log = LoggerFactory.getLogger(Batcher.class);

  private final LanguageModel model;
  private final DeviceState device;
  private final Inbox inbox;
  private final Counters counters;
  private final StopTokens stopTokens;
  private final long[] endTokensMasked;
  private final int places;
  private final int prefillChunk;
  private final SchedulerOptions options;
  private final long stallNanos;
  private final LongSupplier clock;
  private final RowPlan plan;

  private final List<Session> waiting = new ArrayList<>();
  private final List<Session> running = new ArrayList<>();

  /** Running sessions with prompt tokens to submit, the one whose turn is next first. */
  private final ArrayDeque<Session> prefilling = new ArrayDeque<>();

  private final ArrayDeque<InFlightPass> inFlight = new ArrayDeque<>();
  private final ArrayDeque<InFlightPass> idlePasses = new ArrayDeque<>();

  Batcher(
      LanguageModel model,
      StopTokens stopTokens,
      SchedulerOptions options,
      Inbox inbox,
      Counters counters,
      LongSupplier clock) {
    this.model = model;
    this.stopTokens = stopTokens;
    this.options = options;
    this.inbox = inbox;
    this.counters = counters;
    this.clock = clock;
    device = model.states().device();
    endTokensMasked = stopTokens.maskOfOthers(model.layout().vocabularySize());
    places = places(model.limits(), options);
    prefillChunk = options.prefillChunk();
    stallNanos = Nanos.of(options.stallTimeout());
    plan = new RowPlan(model.limits());
    for (int i = 0; i < model.maxPassesInFlight(); i++) {
      idlePasses.add(new InFlightPass(places));
    }
  }

  /** Sessions that can run at the same time: each has room for a row and its logits in a pass. */
  static int places(PassLimits limits, SchedulerOptions options) {
    return Math.min(
        Math.min(options.maxSessions(), limits.maxSequences()),
        Math.min(limits.maxRows(), limits.maxLogitRows()));
  }

  /**
   * Does what can be done now: at most one pass submitted and one read.
   *
   * @return nanoseconds until something falls due; 0 to be called again at once, {@link
   *     Nanos#FOREVER} if only a signal can bring work
   */
  long turn() {
    long now = clock.getAsLong();
    receive();
    if (inbox.isClosed()) {
      endForClose(now);
    }
    endWaiting(now);
    endRunning(now);
    admit(now);
    boolean submitted = submitPass();
    boolean read = false;
    if (!inFlight.isEmpty() && (idlePasses.isEmpty() || !submitted)) {
      readOldestPass();
      read = true;
    }
    counters.show(running.size(), model.states().usedPages());
    return submitted || read ? 0 : untilDue(now);
  }

  /** Whether the engine was closed and nothing is left to do. */
  boolean isFinished() {
    return inbox.isClosed()
        && running.isEmpty()
        && waiting.isEmpty()
        && inFlight.isEmpty()
        && inbox.outstanding() == 0;
  }

  private void receive() {
    for (Session session = inbox.poll(); session != null; session = inbox.poll()) {
      waiting.add(session);
    }
  }

  // Ends from outside.

  private void endForClose(long now) {
    for (int i = waiting.size() - 1; i >= 0; i--) {
      fail(
          waiting.get(i), new EngineClosedException("The engine closed before the request's turn"));
    }
    if (inbox.closeBy() - now <= 0) {
      for (int i = running.size() - 1; i >= 0; i--) {
        fail(
            running.get(i),
            new EngineClosedException("The engine closed before the answer was complete"));
      }
    }
  }

  private void endWaiting(long now) {
    for (int i = waiting.size() - 1; i >= 0; i--) {
      endIfCancelledOrLate(waiting.get(i), now);
    }
  }

  private void endRunning(long now) {
    for (int i = running.size() - 1; i >= 0; i--) {
      Session session = running.get(i);
      session.askReady(now);
      if (!endIfCancelledOrLate(session, now) && session.stalledFor(now) >= stallNanos) {
        fail(
            session,
            new DeadlineExceededException(
                "Request " + session.ticket() + ", waiting for its consumer,",
                options.stallTimeout()));
      }
    }
  }

  private boolean endIfCancelledOrLate(Session session, long now) {
    if (session.ticket().isCancelled()) {
      complete(session, FinishReason.CANCELLED);
      return true;
    }
    if (session.untilDeadline(now) <= 0) {
      fail(session, session.deadlineExceeded());
      return true;
    }
    return false;
  }

  private long untilDue(long now) {
    long due = Nanos.FOREVER;
    for (int i = 0; i < waiting.size(); i++) {
      due = Math.min(due, waiting.get(i).untilDeadline(now));
    }
    for (int i = 0; i < running.size(); i++) {
      Session session = running.get(i);
      due = Math.min(due, session.untilDeadline(now));
      if (!session.isReady()) {
        due = Math.min(due, stallNanos - session.stalledFor(now));
      }
    }
    if (inbox.isClosed() && !running.isEmpty()) {
      due = Math.min(due, inbox.closeBy() - now);
    }
    return Math.max(1, due);
  }

  // Admission.

  private void admit(long now) {
    while (!waiting.isEmpty() && running.size() < places) {
      Session session = waiting.getFirst();
      try {
        if (!admit(session, now)) {
          return;
        }
      } catch (Throwable e) {
        fail(session, e);
      }
    }
  }

  private boolean admit(Session session, long now) {
    SequenceState state = model.states().open(session.maxPositions());
    if (state == null) {
      if (running.isEmpty() && inFlight.isEmpty()) {
        throw new IllegalStateException(
            "No state for %d tokens is free although nothing runs"
                .formatted(session.maxPositions()));
      }
      return false;
    }
    waiting.removeFirst();
    running.add(session);
    prefilling.add(session);
    session.admit(state, device, endTokensMasked, now);
    log.debug("Request {} is running", session.ticket());
    return true;
  }

  // Submission.

  private boolean submitPass() {
    if (running.isEmpty()) {
      return false;
    }
    InFlightPass pass = idlePasses.remove();
    boolean submitted = false;
    try {
      plan.clear();
      addDecodeRows(pass);
      addPromptRows(pass);
      if (plan.numRows() == 0) {
        return false;
      }
      submitted = submit(pass);
      return true;
    } finally {
      if (submitted) {
        inFlight.add(pass);
      } else {
        recycle(pass);
      }
    }
  }

  private boolean submit(InFlightPass pass) {
    PendingPass results;
    try {
      results = model.forward(plan);
    } catch (Throwable e) {
      failAll(pass, e);
      return false;
    }
    pass.submitted(results);
    counters.countStep();
    return true;
  }

  private void addDecodeRows(InFlightPass pass) {
    for (int i = running.size() - 1; i >= 0; i--) {
      Session session = running.get(i);
      if (session.wantsDecodeRow()) {
        try {
          session.addDecodeRow(plan, pass, device);
        } catch (Throwable e) {
          fail(session, e);
        }
      }
    }
  }

  private void addPromptRows(InFlightPass pass) {
    int budget = Math.min(prefillChunk, plan.remainingRows());
    for (int turns = prefilling.size(); turns > 0 && budget > 0; turns--) {
      Session session = prefilling.remove();
      int count = session.isReady() ? Math.min(budget, session.promptRemaining()) : 0;
      try {
        if (count > 0) {
          session.addPromptRows(count, plan, pass, device);
        }
      } catch (Throwable e) {
        fail(session, e);
        continue;
      }
      budget -= count;
      if (session.promptRemaining() > 0) {
        prefilling.add(session);
      }
    }
  }

  // Results.

  private void readOldestPass() {
    InFlightPass pass = inFlight.remove();
    try {
      PendingPass results = pass.pending();
      Throwable failure = await(results);
      for (int i = 0; i < pass.size(); i++) {
        passOver(pass.session(i));
      }
      if (failure == null) {
        handOut(pass, results);
      } else {
        failAll(pass, failure);
      }
    } finally {
      recycle(pass);
    }
  }

  private static @Nullable Throwable await(PendingPass results) {
    try {
      results.await();
      return null;
    } catch (Throwable e) {
      return e;
    }
  }

  private static void passOver(Session session) {
    try {
      session.passOver();
    } catch (Throwable e) {
      log.error("Request {} could not give its state back", session.ticket(), e);
    }
  }

  private void handOut(InFlightPass pass, PendingPass results) {
    long now = clock.getAsLong();
    for (int i = 0; i < pass.size(); i++) {
      Session session = pass.session(i);
      if (session.isDone()) {
        continue;
      }
      try {
        handOut(session, pass, i, results, now);
      } catch (Throwable e) {
        fail(session, e);
      }
    }
  }

  private void handOut(Session session, InFlightPass pass, int i, PendingPass results, long now) {
    if (pass.promptRows(i) > 0 && !session.ticket().isCancelled()) {
      counters.countPromptTokens(pass.promptRows(i));
      session.readPrompt(pass.promptRows(i), now);
    }
    FinishReason end = null;
    if (pass.hasToken(i) && !session.ticket().isCancelled()) {
      counters.countGeneratedToken();
      end = session.readToken(results, pass.logitIndex(i), stopTokens, now);
    }
    if (session.ticket().isCancelled()) {
      end = FinishReason.CANCELLED;
    }
    if (end != null) {
      complete(session, end);
    }
  }

  private void recycle(InFlightPass pass) {
    pass.clear();
    idlePasses.add(pass);
  }

  // Ends.

  private void complete(Session session, FinishReason reason) {
    long now = clock.getAsLong();
    Timings timings = session.timings(now);
    leave(session);
    if (reason == FinishReason.CANCELLED) {
      counters.countCancelled();
    } else {
      counters.countCompleted(
          timings.firstToken().plus(timings.decode()).minus(timings.queued()).toNanos());
    }
    log.debug("Request {} ended: {}, {}", session, reason, timings);
    session.emit(new GenerationEvent.Completed(reason, session.usage(), timings));
    session.ticket().finish();
  }

  private void fail(Session session, Throwable cause) {
    String phase = session.phaseInWords();
    leave(session);
    GenerationException failure = failure(session, phase, cause);
    counters.countFailed();
    if (failure instanceof DeviceFailureException || failure instanceof EngineFailureException) {
      counters.lastFailure(String.valueOf(failure.getMessage()));
      log.error("Request {} failed while {}", session, phase, failure);
    } else {
      log.debug("Request {} failed while {}: {}", session, phase, failure.getMessage());
    }
    session.emit(new GenerationEvent.Failed(failure));
    session.ticket().finish();
  }

  private static GenerationException failure(Session session, String phase, Throwable cause) {
    return switch (cause) {
      case GenerationException e -> e;
      case BackendException e ->
          new DeviceFailureException(
              "The device failed on request %s while %s: %s"
                  .formatted(session.ticket(), phase, e.getMessage()),
              e);
      default ->
          new EngineFailureException(
              "The engine failed on request %s while %s: %s"
                  .formatted(session.ticket(), phase, cause),
              cause);
    };
  }

  private void failAll(InFlightPass pass, Throwable cause) {
    for (int i = 0; i < pass.size(); i++) {
      if (!pass.session(i).isDone()) {
        fail(pass.session(i), cause);
      }
    }
  }

  /** Fails every request after an error that belongs to none of them. */
  void failEverything(Throwable cause) {
    counters.lastFailure(cause.toString());
    receive();
    for (int i = running.size() - 1; i >= 0; i--) {
      fail(running.get(i), cause);
    }
    for (int i = waiting.size() - 1; i >= 0; i--) {
      fail(waiting.get(i), cause);
    }
  }

  /** Lets nobody wait any longer, although no last event can be delivered. */
  void abandon() {
    receive();
    for (Session session : running) {
      session.ticket().finish();
    }
    for (Session session : waiting) {
      session.ticket().finish();
    }
  }

  private void leave(Session session) {
    if (!running.remove(session)) {
      waiting.remove(session);
    }
    prefilling.remove(session);
    inbox.leave();
    try {
      session.end();
    } catch (Throwable e) {
      log.error("Request {} could not give its state back", session.ticket(), e);
    }
    counters.show(running.size(), model.states().usedPages());
  }
}
