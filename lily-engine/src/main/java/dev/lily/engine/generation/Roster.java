package dev.lily.engine.generation;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.StatePool;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Who waits and who runs. Takes sessions in, first come first served, as their states fit, and ends
 * each exactly once, whatever the reason. Engine thread only.
 */
final class Roster {
  private static final Logger log = LoggerFactory.getLogger(Roster.class);

  private final StatePool states;
  private final TokenMasks masks;
  private final PrefixCache cache;
  private final Speculation speculation;
  private final int places;
  private final SchedulerOptions options;
  private final long stallNanos;
  private final long queueNanos;
  private final Inbox inbox;
  private final Counters counters;
  private final LongSupplier clock;

  private final List<Session> waiting = new ArrayList<>();
  private final List<Session> running = new ArrayList<>();
  private final ArrayDeque<Session> prefilling = new ArrayDeque<>();
  private long numEnded;

  /**
   * @param places most sessions running
   */
  Roster(
      StatePool states,
      TokenMasks masks,
      PrefixCache cache,
      Speculation speculation,
      int places,
      SchedulerOptions options,
      Inbox inbox,
      Counters counters,
      LongSupplier clock) {
    this.states = states;
    this.masks = masks;
    this.cache = cache;
    this.speculation = speculation;
    this.places = places;
    this.options = options;
    this.inbox = inbox;
    this.counters = counters;
    this.clock = clock;
    stallNanos = Nanos.of(options.stallTimeout());
    queueNanos = options.queueTimeout() == null ? Nanos.FOREVER : Nanos.of(options.queueTimeout());
  }

  /** Sessions being served. */
  List<Session> running() {
    return running;
  }

  /** Running sessions with prompt tokens to submit, the one whose turn is next first. */
  ArrayDeque<Session> prefilling() {
    return prefilling;
  }

  /** Whether nobody waits or runs, nor is on the way in. */
  boolean isEmpty() {
    return running.isEmpty() && waiting.isEmpty() && inbox.outstanding() == 0;
  }

  /** Sessions ended so far. */
  long numEnded() {
    return numEnded;
  }

  /**
   * Lets sessions in and out as their callers, their time and the room ask for.
   *
   * @param idle whether no pass is in flight, so that the states of ended sessions are free
   */
  void update(long now, boolean idle) {
    receive();
    if (inbox.isClosed()) {
      endForClose(now);
    }
    for (int i = waiting.size() - 1; i >= 0; i--) {
      endIfCancelledOrLate(waiting.get(i), now);
    }
    for (int i = running.size() - 1; i >= 0; i--) {
      endIfCancelledLateOrStalled(running.get(i), now);
    }
    admit(now, idle);
    refuseWhoWaitedTooLong(now);
    show();
  }

  private void receive() {
    for (Session session = inbox.poll(); session != null; session = inbox.poll()) {
      waiting.add(session);
    }
  }

  private void endForClose(long now) {
    while (!waiting.isEmpty()) {
      fail(
          waiting.getFirst(),
          new EngineClosedException("The engine was closed before the request's turn came"));
    }
    if (inbox.closeBy() - now <= 0) {
      while (!running.isEmpty()) {
        fail(
            running.getFirst(),
            new EngineClosedException("The engine was closed before the answer was complete"));
      }
    }
  }

  /** After those whose turn has come were let in. */
  private void refuseWhoWaitedTooLong(long now) {
    for (int i = waiting.size() - 1; i >= 0; i--) {
      Session session = waiting.get(i);
      if (session.sinceSubmission(now) >= queueNanos) {
        fail(
            session,
            EngineBusyException.waited(
                Duration.ofNanos(queueNanos),
                waiting.size() - 1,
                counters.retryAfter(waiting.size(), places)));
      }
    }
  }

  private void endIfCancelledLateOrStalled(Session session, long now) {
    session.askReady(now);
    if (!endIfCancelledOrLate(session, now) && session.stalledFor(now) >= stallNanos) {
      fail(
          session,
          new DeadlineExceededException(
              "Request " + session.ticket() + ", waiting for its consumer,",
              options.stallTimeout()));
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

  private void admit(long now, boolean idle) {
    while (!waiting.isEmpty() && running.size() < places) {
      Session session = waiting.getFirst();
      try {
        if (!admit(session, now, idle)) {
          return;
        }
      } catch (Throwable e) {
        fail(session, e);
      }
    }
  }

  private boolean admit(Session session, long now, boolean idle) {
    SequenceState state = states.open(session.maxPositions());
    if (state == null) {
      if (idle && running.isEmpty()) {
        throw new IllegalStateException(
            "No state for %d tokens is free although nothing runs"
                .formatted(session.maxPositions()));
      }
      return false;
    }
    waiting.removeFirst();
    running.add(session);
    prefilling.add(session);
    session.admit(state, states.device(), masks, cache, speculation, now);
    log.debug("Request {} is running", session.ticket());
    endIfCancelledLateOrStalled(session, now);
    return true;
  }

  /** Nanoseconds until something falls due, at least 1; {@link Nanos#FOREVER} if nothing does. */
  long untilDue(long now) {
    long due = Nanos.FOREVER;
    for (int i = 0; i < waiting.size(); i++) {
      Session session = waiting.get(i);
      due = Math.min(due, session.untilDeadline(now));
      due = Math.min(due, queueNanos - session.sinceSubmission(now));
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

  /** Ends a session that reached its end or was cancelled. */
  void complete(Session session, FinishReason reason) {
    Timings timings = session.timings(clock.getAsLong());
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

  /** Ends a session that cannot go on. */
  void fail(Session session, Throwable cause) {
    GenerationException failure = failure(session, cause);
    String who = session.toString(); // with the phase that it fails in
    leave(session);
    counters.countFailed();
    if (failure instanceof DeviceFailureException || failure instanceof EngineFailureException) {
      counters.lastFailure(String.valueOf(failure.getMessage()));
      log.error("Request {} failed", who, failure);
    } else {
      log.debug("Request {} failed: {}", who, failure.getMessage());
    }
    session.emit(new GenerationEvent.Failed(failure));
    session.ticket().finish();
  }

  private static GenerationException failure(Session session, Throwable cause) {
    return switch (cause) {
      case GenerationException e -> e;
      case BackendException e ->
          new DeviceFailureException(
              "The device failed on request %s while %s: %s"
                  .formatted(session.ticket(), session.phaseInWords(), e.getMessage()),
              e);
      default ->
          new EngineFailureException(
              "The engine failed on request %s while %s: %s"
                  .formatted(session.ticket(), session.phaseInWords(), cause),
              cause);
    };
  }

  /** Fails every request after an error that belongs to none of them. */
  void failEverything(Throwable cause) {
    counters.lastFailure("The engine failed outside any request: " + cause);
    receive();
    while (!running.isEmpty()) {
      fail(running.getFirst(), cause);
    }
    while (!waiting.isEmpty()) {
      fail(waiting.getFirst(), cause);
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
    numEnded++;
    inbox.leave();
    try {
      session.end();
    } catch (Throwable e) {
      log.error("Request {} could not give its state back", session.ticket(), e);
    }
    show();
  }

  /** Publishes what runs and what it holds. */
  void show() {
    counters.show(running.size(), states);
  }
}
