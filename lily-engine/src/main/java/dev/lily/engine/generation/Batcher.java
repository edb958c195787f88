package dev.lily.engine.generation;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.LanguageModel;
import java.util.ArrayDeque;
import java.util.List;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Works for the sessions on the roster, a turn at a time: submits one pass with a row of every
 * session that is writing and a slice of prompts, and hands out the tokens of the oldest pass.
 * Where two passes may be in flight, a pass is submitted before the tokens of the one before it are
 * read; rows of sessions that turn out to have ended are ignored. Engine thread only.
 */
final class Batcher {
  private static final Logger log = LoggerFactory.getLogger(Batcher.class);

  /** Results stay valid only until the pass after the next one is begun. */
  private static final int MAX_PASSES_IN_FLIGHT = 2;

  private final LanguageModel model;
  private final DeviceState device;
  private final StopTokens stopTokens;
  private final int prefillChunk;
  private final Inbox inbox;
  private final Counters counters;
  private final LongSupplier clock;
  private final Passes passes = new Passes();
  private final PrefixCache cache;
  private final PrefillPacer pacer;
  private final Roster roster;
  private final Speculation speculation;
  private final RowPlan plan;
  private final int numPassesInFlight;
  private final ArrayDeque<InFlightPass> inFlight = new ArrayDeque<>();
  private final ArrayDeque<InFlightPass> idlePasses = new ArrayDeque<>();
  private long lastEnd;

  /**
   * @param messageStart the token that begins every message of a prompt; -1 if there is none
   * @param drafts makes a session's drafts from its prompt, if there are to be any
   */
  Batcher(
      LanguageModel model,
      StopTokens stopTokens,
      int messageStart,
      SchedulerOptions options,
      Inbox inbox,
      Counters counters,
      LongSupplier clock,
      Function<int[], DraftSource> drafts) {
    this.model = model;
    this.stopTokens = stopTokens;
    this.inbox = inbox;
    this.counters = counters;
    this.clock = clock;
    prefillChunk = options.prefillChunk();
    device = model.states().device();
    plan = new RowPlan(model.limits());
    int places = places(model.limits(), options);
    TokenMasks masks = new TokenMasks(stopTokens, model.layout().vocabularySize());
    cache =
        new PrefixCache(
            model.states(), options.cache(), messageStart, counters, passes, disk(options.cache()));
    pacer = new PrefillPacer(options.maxStepTime());
    lastEnd = clock.getAsLong();
    speculation =
        new Speculation(options.speculation(), model, places, stopTokens, passes, drafts, counters);
    roster =
        new Roster(
            model.states(), masks, cache, speculation, places, options, inbox, counters, clock);
    numPassesInFlight = Math.min(model.maxPassesInFlight(), MAX_PASSES_IN_FLIGHT);
    for (int i = 0; i < numPassesInFlight; i++) {
      idlePasses.add(new InFlightPass(places));
    }
  }

  private @Nullable DiskTier disk(PrefixCacheOptions options) {
    if (options.disk() == null) {
      return null;
    }
    if (options.bytes() == 0 || model.states().maxSnapshots() == 0) {
      String problem = "There is nothing to keep on disk, because the prefix cache is off";
      counters.disk().problem(problem);
      log.warn("{}", problem);
      return null;
    }
    return DiskTier.open(options.disk(), device, passes, counters.disk(), clock, inbox::signal);
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
    long ended = roster.numEnded();
    roster.update(now, inFlight.isEmpty());
    boolean moved = cache.moveBytes(roster.running().isEmpty());
    boolean submitted = submitPass();
    boolean read = false;
    if (!inFlight.isEmpty() && (idlePasses.isEmpty() || !submitted)) {
      readOldestPass();
      read = true;
    }
    roster.show();
    boolean changed = moved || submitted || read || roster.numEnded() != ended;
    return changed ? 0 : Math.min(roster.untilDue(now), cache.untilDue());
  }

  /** Whether the engine was closed and nothing is left to do. */
  boolean isFinished() {
    return inbox.isClosed() && inFlight.isEmpty() && roster.isEmpty();
  }

  /** Fails every request after an error that belongs to none of them. */
  void failEverything(Throwable cause) {
    cache.clear();
    roster.failEverything(cause);
  }

  /** Gives up what outlives the requests. To be called once, when nothing is left to do. */
  void close() {
    cache.close();
  }

  /** Lets nobody wait any longer, although no last event can be delivered. */
  void abandon() {
    roster.abandon();
  }

  private boolean submitPass() {
    if (roster.running().isEmpty()) {
      return false;
    }
    InFlightPass pass = idlePasses.remove();
    boolean submitted = false;
    try {
      plan.clear();
      pass.begin(clock.getAsLong());
      beginSpeculation();
      int passesPerToken = addDecodeRows(pass);
      pass.load().begin(plan.numRows());
      addPromptRows(pass, passesPerToken);
      submitted = plan.numRows() > 0 && submit(pass);
      return submitted;
    } finally {
      if (submitted) {
        inFlight.add(pass);
      } else {
        recycle(pass);
      }
    }
  }

  private void beginSpeculation() {
    if (speculation.isOn()) {
      int writing = 0;
      for (int i = 0; i < roster.running().size(); i++) {
        writing += roster.running().get(i).promptRemaining() == 0 ? 1 : 0;
      }
      speculation.begin(writing);
    }
  }

  /**
   * Adds a row of every session that is writing.
   *
   * @return how many passes lie between two tokens of one of them, at most; 0 if nobody writes
   */
  private int addDecodeRows(InFlightPass pass) {
    List<Session> running = roster.running();
    int passesPerToken = 0;
    for (int i = running.size() - 1; i >= 0; i--) {
      Session session = running.get(i);
      if (session.isWriting()) {
        passesPerToken =
            Math.max(passesPerToken, session.mayWaitForItsToken() ? numPassesInFlight : 1);
      }
      if (session.wantsDecodeRow()) {
        try {
          session.addDecodeRows(plan, pass, device);
        } catch (Throwable e) {
          roster.fail(session, e);
        }
      }
    }
    return passesPerToken;
  }

  /**
   * Gives the prompt whose turn it is a slice, and what that leaves to the next ones, whose turn is
   * not over with it.
   */
  private void addPromptRows(InFlightPass pass, int passesPerToken) {
    ArrayDeque<Session> prefilling = roster.prefilling();
    int room = Math.min(prefillChunk, plan.remainingRows());
    boolean isFirst = true;
    for (int turns = prefilling.size(); turns > 0 && room > 0; turns--) {
      Session session = prefilling.remove();
      int count = 0;
      try {
        if (session.isReady() && !session.waitsFor(roster.running())) {
          count = addPromptRows(session, pass, room, passesPerToken);
        }
      } catch (Throwable e) {
        roster.fail(session, e);
        continue;
      }
      room = pass.load().isPaced() ? 0 : room - count;
      if (session.promptRemaining() == 0) {
        isFirst = false;
      } else if (room == 0 && !isFirst) {
        prefilling.addFirst(session);
      } else {
        prefilling.add(session);
        isFirst &= count == 0;
      }
    }
  }

  /** Adds a slice of a prompt, which is as long as time allows if others write. */
  private int addPromptRows(Session session, InFlightPass pass, int room, int passesPerToken) {
    if (passesPerToken > 0 && pacer.isFull(pass.load(), passesPerToken)) {
      // Without a look into the cache: what that restores must be in the pass of its own rows.
      pass.load().addPrompt(0, 0, true);
      return 0;
    }
    int position = session.promptPosition();
    int most = session.promptRows(room);
    int count =
        passesPerToken == 0 ? most : pacer.rows(pass.load(), position, most, passesPerToken);
    session.addPromptRows(count, plan, pass, device);
    pass.load().addPrompt(count, position, count < most);
    return count;
  }

  private boolean submit(InFlightPass pass) {
    PendingPass results;
    try {
      results = model.forward(plan);
    } catch (Throwable e) {
      failAll(pass, e);
      return false;
    }
    passes.countSubmitted();
    pass.submitted(results);
    counters.countStep();
    return true;
  }

  private void readOldestPass() {
    InFlightPass pass = inFlight.remove();
    try {
      PendingPass results = pass.pending();
      Throwable failure = await(results);
      passes.countEnded();
      for (int i = 0; i < pass.size(); i++) {
        passOver(pass.session(i), failure != null);
      }
      if (failure == null) {
        handOut(pass, results, measure(pass));
      } else {
        lastEnd = clock.getAsLong();
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

  private static void passOver(Session session, boolean failed) {
    try {
      session.passOver(failed);
    } catch (Throwable e) {
      log.error("Request {} could not give its state back", session.ticket(), e);
    }
  }

  /**
   * Tells how long a pass took that has just ended: since its beginning, or since the end of the
   * one before it, if that ran first.
   */
  private long measure(InFlightPass pass) {
    long now = clock.getAsLong();
    boolean hasWaited = lastEnd - pass.begun() > 0;
    long nanos = now - (hasWaited ? lastEnd : pass.begun());
    pacer.measured(pass.load(), nanos);
    speculation.ran(pass, nanos);
    lastEnd = now;
    return now;
  }

  private void handOut(InFlightPass pass, PendingPass results, long now) {
    for (int i = 0; i < pass.size(); i++) {
      Session session = pass.session(i);
      if (session.isDone()) {
        continue;
      }
      FinishReason end;
      try {
        end = handOut(session, pass, i, results, now);
      } catch (Throwable e) {
        roster.fail(session, e);
        continue;
      }
      if (end != null) {
        roster.complete(session, end);
      }
    }
  }

  private @Nullable FinishReason handOut(
      Session session, InFlightPass pass, int i, PendingPass results, long now) {
    FinishReason end = null;
    if (pass.promptRows(i) > 0 && !session.ticket().isCancelled()) {
      counters.countPromptTokens(pass.promptRows(i));
      session.readPrompt(pass.promptRows(i), now);
    }
    if (pass.hasToken(i) && !session.ticket().isCancelled()) {
      end =
          session.readTokens(
              results, pass.logitIndex(i), pass.numTokens(i), stopTokens, device, counters, now);
    }
    return session.ticket().isCancelled() ? FinishReason.CANCELLED : end;
  }

  private void failAll(InFlightPass pass, Throwable cause) {
    cache.clear();
    for (int i = 0; i < pass.size(); i++) {
      if (!pass.session(i).isDone()) {
        roster.fail(pass.session(i), cause);
      }
    }
  }

  private void recycle(InFlightPass pass) {
    pass.clear();
    idlePasses.add(pass);
  }
}
