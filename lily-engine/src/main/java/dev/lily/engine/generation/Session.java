package dev.lily.engine.generation;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.engine.tokenizer.Tokenizer;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One request's life: waiting, prefill, decode, done. Its two sides run apart: rows are submitted
 * for it, and tokens of passes submitted earlier are read, at most as many passes later as may be
 * in flight. Made on the caller's thread, then engine thread only.
 */
final class Session {
  private static final Logger log = LoggerFactory.getLogger(Session.class);
  private static final int NOT_LOOKED_UP = -1;
  private static final int[] PREVIOUS = {RowPlan.PREVIOUS_TOKEN};

  private enum Phase {
    WAITING("waiting in the queue"),
    PREFILL("reading the prompt"),
    DECODE("writing the answer"),
    DONE("done");

    private final String words;

    Phase(String words) {
      this.words = words;
    }
  }

  private final Ticket ticket;
  private final GenerationListener listener;
  private final AnswerReader answer;
  private final int[] prompt;
  private final SamplingParameters sampling;
  private final @Nullable AnswerGuide guide;
  private final int minTokens;
  private final int maxTokens;
  private final @Nullable Duration timeout;
  private final RequestTimes times;
  private final boolean answerIsRepeated;

  private Phase phase = Phase.WAITING;
  private @Nullable SequenceState state;
  private @Nullable CachedPrefix prefix;
  private @Nullable Drafts drafts;
  private boolean keepsAnswer;
  private boolean ready = true;
  private long stalledNanos;

  private int cached = NOT_LOOKED_UP;
  private int promptSubmitted;
  private int samplesSubmitted;
  private int passesInFlight;

  private int promptRead;

  /**
   * @param guide of a constrained answer
   * @param maxTokens most tokens to generate, so that prompt and answer fit the context window
   */
  Session(
      Ticket ticket,
      GenerationRequest request,
      EncodedPrompt prompt,
      SamplingParameters sampling,
      @Nullable AnswerGuide guide,
      int maxTokens,
      Tokenizer tokenizer,
      GenerationListener listener,
      long submittedNanos) {
    this.ticket = ticket;
    this.listener = listener;
    this.prompt = prompt.tokens();
    this.sampling = sampling;
    this.guide = guide;
    this.maxTokens = maxTokens;
    times = new RequestTimes(submittedNanos);
    minTokens = request.minTokens();
    timeout = request.timeout();
    answerIsRepeated = request.rawPrompt() != null || request.preserveThinking();
    answer =
        new AnswerReader(
            tokenizer,
            new AnswerPipeline(
                tokenizer,
                request.conversation().tools(),
                prompt.thinking(),
                request.stopStrings()),
            guide,
            minTokens,
            maxTokens,
            sampling.topLogprobs() >= 0);
  }

  Ticket ticket() {
    return ticket;
  }

  boolean isDone() {
    return phase == Phase.DONE;
  }

  String phaseInWords() {
    return phase.words;
  }

  /** The most tokens its sequence will hold. */
  int maxPositions() {
    return prompt.length + maxTokens;
  }

  // Time and readiness.

  /** Nanoseconds until the request's time is up; {@link Nanos#FOREVER} if it has no limit. */
  long untilDeadline(long now) {
    return timeout == null ? Nanos.FOREVER : Nanos.of(timeout) - times.sinceSubmission(now);
  }

  long sinceSubmission(long now) {
    return times.sinceSubmission(now);
  }

  DeadlineExceededException deadlineExceeded() {
    return new DeadlineExceededException(
        "Request " + ticket.id() + ", " + phase.words + ",",
        timeout == null ? Duration.ZERO : timeout);
  }

  /** Asks the consumer once per step whether it can take more. */
  void askReady(long now) {
    boolean wasReady = ready;
    try {
      ready = listener.isReady();
    } catch (Throwable e) {
      ready = false;
      listenerFailed(e);
    }
    if (wasReady && !ready) {
      stalledNanos = now;
    }
  }

  boolean isReady() {
    return ready;
  }

  /** Nanoseconds since the consumer stopped taking events. */
  long stalledFor(long now) {
    return ready ? 0 : now - stalledNanos;
  }

  // Submission.

  /** Takes its place with an empty state that it owns from now on. */
  void admit(
      SequenceState state,
      DeviceState device,
      TokenMasks masks,
      PrefixCache cache,
      Speculation speculation,
      long now) {
    this.state = state;
    prefix = new CachedPrefix(cache, ticket, prompt);
    drafts = guide == null ? speculation.drafts(prompt) : null;
    times.admitted(now);
    phase = Phase.PREFILL;
    device.beginSampling(state.samplingSlot(), sampling, prompt);
    if (guide != null) {
      guide.masks(masks);
    }
    if (minTokens > 0) {
      device.maskTokens(state.samplingSlot(), masks.withoutEndTokens());
    }
  }

  int promptRemaining() {
    return prompt.length - promptSubmitted;
  }

  /** Whether its first rows had better wait for what other sessions are reading. */
  boolean waitsFor(List<Session> running) {
    if (cached != NOT_LOOKED_UP) {
      return false;
    }
    for (int i = 0; i < running.size(); i++) {
      Session other = running.get(i);
      if (other.isReading() && prefix().gainsFrom(other.prefix())) {
        return true;
      }
    }
    return prefix().isComing();
  }

  private boolean isReading() {
    return ready && cached != NOT_LOOKED_UP && promptRemaining() > 0;
  }

  /**
   * Position of the prompt token to submit next. The first call takes what the cache has, so that
   * what other sessions read in the meantime counts, and so that the copy is made in the same pass.
   */
  int promptPosition() {
    if (cached == NOT_LOOKED_UP) {
      cached = prefix().restore(sequence());
      promptSubmitted = cached;
      promptRead = cached;
    }
    return promptSubmitted;
  }

  /** How many prompt tokens to submit next, so that the state can be kept behind them. */
  int promptRows(int most) {
    return prefix().rows(promptSubmitted, Math.min(most, promptRemaining()));
  }

  /** Whether its prompt is submitted and its consumer takes what is written. */
  boolean isWriting() {
    return ready && promptRemaining() == 0;
  }

  /**
   * Whether its next row is the token sampled last. A constrained answer waits until that token has
   * been read, because it decides what may follow; others do if it may decide what is drafted.
   */
  boolean wantsDecodeRow() {
    return ready
        && promptRemaining() == 0
        && samplesSubmitted < maxTokens
        && (samplesSubmitted == answer.generated() || mayRunAhead());
  }

  /** Whether a row of it may have to wait until the token before it has been read. */
  boolean mayWaitForItsToken() {
    return guide != null || drafts != null;
  }

  private boolean mayRunAhead() {
    return guide == null && (drafts == null || drafts.mayRunAhead());
  }

  /** Adds the next {@code count} prompt tokens; the last one of all samples the first token. */
  void addPromptRows(int count, RowPlan plan, InFlightPass pass, DeviceState device) {
    SequenceState sequence = sequence();
    sequence.reserve(count);
    boolean last = count == promptRemaining();
    if (last) {
      beforeSamples(1, device);
    }
    int index = plan.numLogitRows();
    plan.add(
        prompt,
        promptSubmitted,
        count,
        sequence.position(),
        sequence.pages(),
        sequence.recurrentSlot(),
        last ? 1 : 0,
        last ? sequence.samplingSlot() : RowPlan.NO_SAMPLING);
    promptSubmitted += count;
    if (last) {
      pass.addPromptEnd(this, count, index);
    } else {
      pass.addPrompt(this, count);
    }
  }

  /** Adds the row of the token sampled last, and perhaps rows of drafts behind it. */
  void addDecodeRows(RowPlan plan, InFlightPass pass, DeviceState device) {
    SequenceState sequence = sequence();
    int[] tokens = PREVIOUS;
    int count = 1;
    int samples = 1;
    if (drafts != null && samplesSubmitted == answer.generated()) {
      count = drafts.draft(mostSamples());
      samples += drafts.numDrafted();
      tokens = count > 1 ? drafts.rows() : PREVIOUS;
      if (samples > 1) {
        sequence.mark();
      }
    }
    sequence.reserve(count);
    beforeSamples(samples, device);
    int index = plan.numLogitRows();
    plan.add(
        tokens,
        0,
        count,
        sequence.position(),
        sequence.pages(),
        sequence.recurrentSlot(),
        samples,
        sequence.samplingSlot());
    pass.addDecode(this, count, index, samples);
  }

  /** Most tokens of a pass: no more than are allowed, and all with one mask. */
  private int mostSamples() {
    int end = samplesSubmitted < minTokens ? minTokens : maxTokens;
    return end - samplesSubmitted;
  }

  private void beforeSamples(int samples, DeviceState device) {
    if (guide != null) {
      device.maskTokens(sequence().samplingSlot(), guide.mask());
    } else if (minTokens > 0 && samplesSubmitted == minTokens) {
      device.maskTokens(sequence().samplingSlot(), null);
    }
    samplesSubmitted += samples;
  }

  void passSubmitted(int rows) {
    sequence().advance(rows);
    passesInFlight++;
    prefix().advanced(sequence());
  }

  /**
   * One of its passes is over; gives the state back if the request has ended meanwhile.
   *
   * @param failed whether the state is lost
   */
  void passOver(boolean failed) {
    passesInFlight--;
    keepsAnswer &= !failed;
    closeStateIfIdle();
  }

  private void closeStateIfIdle() {
    if (phase == Phase.DONE && passesInFlight == 0 && state != null) {
      if (keepsAnswer) {
        prefix().answered(state);
      }
      state.close();
      state = null;
    }
  }

  private SequenceState sequence() {
    if (state == null) {
      throw new IllegalStateException("Request " + ticket.id() + " has no sequence state");
    }
    return state;
  }

  private CachedPrefix prefix() {
    if (prefix == null) {
      throw new IllegalStateException("Request " + ticket.id() + " was not admitted");
    }
    return prefix;
  }

  // Results.

  /** Prompt tokens were read by the model. */
  void readPrompt(int count, long now) {
    promptRead += count;
    if (promptRead == prompt.length) {
      times.promptRead(now);
      phase = Phase.DECODE;
    }
    emit(new GenerationEvent.PromptProgress(promptRead, prompt.length));
  }

  /**
   * Reads the tokens of a pass, as far as they belong to the answer, and tells the listener what
   * they give.
   *
   * @param index of the first of {@code count} samples
   * @return why the answer ends with them, or {@code null} if it goes on
   */
  @Nullable FinishReason readTokens(
      PendingPass pass,
      int index,
      int count,
      StopTokens stopTokens,
      DeviceState device,
      Counters counters,
      long now) {
    FinishReason end;
    int read = 0;
    do {
      counters.countGeneratedToken();
      end = readToken(pass, index + read++, stopTokens, now);
    } while (read < count && end == null && !ticket.isCancelled() && drafts().isRight(read));
    if (drafts != null && drafts.passed(read)) {
      sequence().rollBack();
      samplesSubmitted = answer.generated();
      if (end == null) {
        rewindSampling(pass, index, count, read, device);
      }
    }
    return end;
  }

  private void rewindSampling(
      PendingPass pass, int index, int count, int kept, DeviceState device) {
    int[] chosen = drafts().chosen(pass, index, count);
    device.rewindSampling(sequence().samplingSlot(), chosen, drafts().numChosen(), kept);
  }

  private Drafts drafts() {
    if (drafts == null) {
      throw new IllegalStateException("Request " + ticket.id() + " has no drafts");
    }
    return drafts;
  }

  private @Nullable FinishReason readToken(
      PendingPass pass, int index, StopTokens stopTokens, long now) {
    int token = answer.token(pass, index);
    times.token(now);
    prefix().add(token);
    if (drafts != null) {
      drafts.add(token);
    }
    FinishReason end = answer.read(token, pass, index, stopTokens);
    keepsAnswer = end == FinishReason.TOOL_CALLS || (end != null && answerIsRepeated);
    GenerationEvent.Output output = answer.takeOutput();
    if (output != null) {
      emit(output);
    }
    return end;
  }

  // The end.

  /** Ends the request and gives its state back, at once or when its last pass is over. */
  void end() {
    phase = Phase.DONE;
    if (drafts != null) {
      log.debug("Request {}: {}", ticket, drafts);
    }
    closeStateIfIdle();
  }

  Usage usage() {
    return new Usage(prompt.length, answer.generated(), answer.reasoning(), Math.max(0, cached));
  }

  Timings timings(long now) {
    return times.timings(now);
  }

  /** Hands an event to the listener; one that throws has its request cancelled. */
  void emit(GenerationEvent event) {
    try {
      listener.onEvent(event);
    } catch (Throwable e) {
      listenerFailed(e);
    }
  }

  private void listenerFailed(Throwable e) {
    log.warn("Request {}: its listener threw, so it is cancelled", ticket, e);
    ticket.cancel();
  }

  @Override
  public String toString() {
    return "%s (%s, %d of %d prompt tokens read, %d tokens generated)"
        .formatted(ticket, phase.words, promptRead, prompt.length, answer.generated());
  }
}
