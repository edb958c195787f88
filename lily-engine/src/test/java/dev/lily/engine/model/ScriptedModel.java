package dev.lily.engine.model;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A model that says what a script tells it, for tests of everything above the model. It holds its
 * caller to the contract of {@link LanguageModel}: rows in position order without gaps, pages
 * reserved, with the sequence's own tokens in them and not written while shared, one thread, no
 * more passes in flight than allowed, results read in time, nothing used after its end. Slots are
 * copied and cleared at the start of the next pass, and that is lost if it fails. A breach is
 * thrown where it happens and kept for {@link #assertClean}.
 */
public final class ScriptedModel implements LanguageModel {

  /** What the model says next. */
  @FunctionalInterface
  public interface Script {
    /**
     * Chooses a token.
     *
     * @param tokens all the sequence has seen
     * @param promptTokens how many of them are the prompt
     */
    int next(int[] tokens, int promptTokens);

    /** Says these tokens one after the other whatever the prompt is, the last one for ever. */
    static Script saying(int... answer) {
      return (tokens, promptTokens) ->
          answer[Math.min(tokens.length - promptTokens, answer.length - 1)];
    }
  }

  /**
   * The rows that one sequence had in a step.
   *
   * @param slot its recurrent slot
   * @param position of its first row
   * @param count rows
   * @param sampled whether a token was chosen
   * @param decode whether the row was the token chosen last
   */
  public record Rows(int slot, int position, int count, boolean sampled, boolean decode) {}

  /** A step at which the device stops until it is released. */
  public static final class Gate {
    private final Signal reached = new Signal();
    private final Signal released = new Signal();

    /** Waits until the engine waits for the device. */
    public void awaitReached() {
      reached.await();
    }

    /** Lets the device go on. */
    public void release() {
      released.fire();
    }
  }

  private final Script script;
  private final PassLimits limits;
  private final int maxPassesInFlight;
  private final ScriptedDeviceState device;
  private final StatePool states;
  private final List<String> breaches = new CopyOnWriteArrayList<>();
  private final List<List<Rows>> steps = new CopyOnWriteArrayList<>();
  private final Map<Integer, Throwable> failingForwards = new HashMap<>();
  private final Map<Integer, Throwable> failingPasses = new HashMap<>();
  private final Map<Integer, Gate> gates = new HashMap<>();
  private final List<Pass> passesInFlight = new ArrayList<>();
  private final List<ScriptedDeviceState.Sequence> made = new ArrayList<>();
  private final List<ScriptedDeviceState.Sequence> copied = new ArrayList<>();
  private Consumer<List<Rows>> submitted = _ -> {};
  private IntConsumer awaited = _ -> {};
  private int begun;
  private int inFlight;
  private volatile boolean closed;

  private ScriptedModel(Builder builder) {
    script = builder.script;
    maxPassesInFlight = builder.maxPassesInFlight;
    limits =
        new PassLimits(
            builder.maxRows,
            builder.maxSequences,
            builder.maxSequences * (1 + builder.draftTokens),
            builder.pages * builder.pageTokens);
    StateLayout layout =
        new StateLayout(
            1,
            1,
            1,
            builder.pageTokens,
            builder.pages,
            1,
            4,
            1,
            1,
            1,
            1,
            builder.maxSequences * (builder.draftTokens > 0 ? 2 : 1) + builder.snapshots,
            builder.maxSequences,
            builder.vocabularySize);
    device = new ScriptedDeviceState(layout, this::breach);
    device.onMade(this::made);
    device.onHostAccess(new HostAccess());
    states = new StatePool(device);
  }

  /** A model for up to 8 sequences of 4096 tokens each. */
  public static Builder builder(Script script) {
    return new Builder(script);
  }

  /** Collects the model's sizes. */
  public static final class Builder {
    private final Script script;
    private int vocabularySize = 1000;
    private int maxPassesInFlight = 1;
    private int maxSequences = 8;
    private int maxRows = 520;
    private int pages = 8 * 256;
    private int pageTokens = 16;
    private int snapshots;
    private int draftTokens;

    private Builder(Script script) {
      this.script = script;
    }

    public Builder vocabularySize(int value) {
      vocabularySize = value;
      return this;
    }

    public Builder maxPassesInFlight(int value) {
      maxPassesInFlight = value;
      return this;
    }

    public Builder maxSequences(int value) {
      maxSequences = value;
      return this;
    }

    public Builder maxRows(int value) {
      maxRows = value;
      return this;
    }

    /** Slots for snapshots, beside those for sequences. */
    public Builder snapshots(int value) {
      snapshots = value;
      return this;
    }

    /** Rows with logits of a sequence beside its one, and a second slot for each. */
    public Builder draftTokens(int value) {
      draftTokens = value;
      return this;
    }

    /** Size of the page pool. */
    public Builder pages(int count, int tokens) {
      pages = count;
      pageTokens = tokens;
      return this;
    }

    public ScriptedModel build() {
      return new ScriptedModel(this);
    }
  }

  /** Makes {@link #forward} refuse the pass with this number, counted from 0. */
  public void failForward(int step) {
    failForward(step, new BackendException("scripted refusal of pass " + step));
  }

  /** Makes {@link #forward} throw in place of the pass with this number, counted from 0. */
  public void failForward(int step, Throwable failure) {
    failingForwards.put(step, failure);
  }

  /** Makes the pass with this number fail on the device, counted from 0. */
  public void failPass(int step) {
    failPass(step, new BackendException("scripted failure of pass " + step));
  }

  /** Makes awaiting the pass with this number throw, counted from 0. */
  public void failPass(int step, Throwable failure) {
    failingPasses.put(step, failure);
  }

  /** Throws a failure that is a {@link RuntimeException} or an {@link Error}, if there is one. */
  static void fail(@Nullable Throwable failure) {
    switch (failure) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new IllegalArgumentException(failure);
    }
  }

  /** Makes the pass with this number take until it is released, counted from 0. */
  public Gate hold(int step) {
    return gates.computeIfAbsent(step, _ -> new Gate());
  }

  /**
   * Says who is told of passes, to let time go by.
   *
   * @param submitted takes the rows of a pass when it is submitted
   * @param awaited takes the number of a submitted pass, counted from 0, when it is awaited
   */
  public void onPasses(Consumer<List<Rows>> submitted, IntConsumer awaited) {
    this.submitted = submitted;
    this.awaited = awaited;
  }

  /** The rows of each step so far that was submitted. */
  public List<List<Rows>> steps() {
    return steps;
  }

  /** The state below, which lists what was asked of it. */
  public ScriptedDeviceState device() {
    return device;
  }

  public boolean isClosed() {
    return closed;
  }

  /** The log-probability reported for a token. */
  public static float logprob(int token) {
    return -0.25f * (1 + token % 8);
  }

  @Override
  public PassLimits limits() {
    return limits;
  }

  @Override
  public StateLayout layout() {
    return device.layout();
  }

  @Override
  public StatePool states() {
    return states;
  }

  @Override
  public int maxPassesInFlight() {
    return maxPassesInFlight;
  }

  @Override
  public PendingPass forward(RowPlan plan) {
    device.checkUsable("forward");
    int step = begun++;
    fail(failingForwards.get(step));
    if (inFlight == maxPassesInFlight) {
      breach("pass " + step + " was begun with " + inFlight + " in flight");
    }
    checkPlan(plan);
    Pass pass = new Pass(step, steps.size(), plan.numLogitRows());
    pass.made.addAll(made);
    pass.copied.addAll(copied);
    made.clear();
    copied.clear();
    List<Rows> rows = new ArrayList<>();
    int logit = 0;
    for (int s = 0; s < plan.numSequences(); s++) {
      rows.add(run(plan, s, pass, logit));
      while (logit < plan.numLogitRows() && plan.sequenceOf(plan.logitRow(logit)) == s) {
        logit++;
      }
    }
    inFlight++;
    passesInFlight.add(pass);
    steps.add(List.copyOf(rows));
    submitted.accept(steps.getLast());
    return pass;
  }

  private void checkPlan(RowPlan plan) {
    if (plan.numRows() == 0) {
      breach("an empty plan was submitted");
    }
    Set<Integer> slots = new HashSet<>();
    Set<Integer> written = new HashSet<>();
    for (int s = 0; s < plan.numSequences(); s++) {
      if (!slots.add(plan.recurrentSlot(s))) {
        breach("slot " + plan.recurrentSlot(s) + " is in the plan twice");
      }
      PageTable pages = plan.pages(s);
      int needed = Math.ceilDiv(plan.position(s) + plan.numRows(s), device.layout().pageTokens());
      if (pages.size() < needed) {
        breach("%d pages are reserved, %d needed".formatted(pages.size(), needed));
      }
      Set<Integer> own = new HashSet<>();
      for (int p = 0; p < pages.size(); p++) {
        boolean isWritten = (p + 1) * device.layout().pageTokens() > plan.position(s);
        if (isWritten ? !written.add(pages.page(p)) : !own.add(pages.page(p))) {
          breach("page " + pages.page(p) + " is used twice");
        }
      }
    }
    for (int s = 0; s < plan.numSequences(); s++) {
      for (int p = 0; p < plan.position(s) / device.layout().pageTokens(); p++) {
        if (written.contains(plan.pages(s).page(p))) {
          breach("page " + plan.pages(s).page(p) + " is written while it is shared");
        }
      }
    }
  }

  private Rows run(RowPlan plan, int s, Pass pass, int logit) {
    int slot = plan.recurrentSlot(s);
    ScriptedDeviceState.Sequence sequence = device.sequence(slot);
    if (sequence.lost) {
      breach("slot " + slot + " is used although a pass that wrote it failed");
    }
    if (plan.position(s) != sequence.size()) {
      breach(
          "rows of slot %d start at %d, but it has seen %d tokens"
              .formatted(slot, plan.position(s), sequence.size()));
    }
    for (int p = 0; p < sequence.size(); p++) {
      if (cell(plan.pages(s), p) != sequence.token(p)) {
        breach("the page of position %d of slot %d has another token".formatted(p, slot));
      }
    }
    int samplingSlot = plan.samplingSlot(s);
    int first = plan.firstRow(s);
    boolean decode = plan.token(first) == RowPlan.PREVIOUS_TOKEN;
    boolean sampled = samplingSlot != RowPlan.NO_SAMPLING;
    for (int row = first; row < first + plan.numRows(s); row++) {
      int token = plan.token(row);
      if (token == RowPlan.PREVIOUS_TOKEN) {
        token = row == first ? device.sampler(samplingSlot).last : -1;
      }
      if (token < 0 || token >= device.layout().vocabularySize()) {
        breach("row " + row + " has token " + token);
      }
      int pageTokens = device.layout().pageTokens();
      int page = plan.pages(s).page(sequence.size() / pageTokens);
      device.page(page)[sequence.size() % pageTokens] = token;
      pass.written.add(page);
      sequence.add(token);
      if (sampled && logit < plan.numLogitRows() && plan.logitRow(logit) == row) {
        sample(sequence, device.sampler(samplingSlot), pass, logit++);
      }
    }
    pass.sequences.add(sequence);
    for (int p = 0; p < plan.pages(s).size(); p++) {
      pass.used.add(plan.pages(s).page(p));
    }
    sequence.inFlight++;
    return new Rows(slot, plan.position(s), plan.numRows(s), sampled, decode);
  }

  private void sample(
      ScriptedDeviceState.Sequence sequence,
      ScriptedDeviceState.Sampler sampler,
      Pass pass,
      int logit) {
    if (sampler.last < 0) {
      sampler.promptTokens = sequence.size();
    }
    int token = sampler.allow(script.next(sequence.toArray(), sampler.promptTokens));
    sampler.choose(token);
    pass.tokens[logit] = token;
    pass.topLogprobs[logit] = sampler.parameters.topLogprobs();
  }

  private int cell(PageTable pages, int position) {
    int pageTokens = device.layout().pageTokens();
    return device.page(pages.page(position / pageTokens))[position % pageTokens];
  }

  private void made(ScriptedDeviceState.Sequence source, ScriptedDeviceState.Sequence result) {
    made.add(result);
    copied.add(source);
    for (Pass pass : passesInFlight) {
      if (pass.sequences.contains(source) || pass.made.contains(source)) {
        pass.made.add(result);
      }
    }
  }

  private void breach(String what) {
    breaches.add(what);
    throw new AssertionError("Contract of LanguageModel: " + what);
  }

  /**
   * Fails unless the contract was kept and every page and slot was given back, but for those of
   * snapshots.
   */
  public void assertClean() {
    if (!breaches.isEmpty()) {
      throw new AssertionError("The contract of LanguageModel was broken: " + breaches);
    }
    int slots = states.usedSlots() - states.snapshots();
    if (inFlight != 0 || states.sequencePages() != 0 || slots != 0) {
      throw new AssertionError(
          "%d passes, %d pages and %d slots were not given back"
              .formatted(inFlight, states.sequencePages(), slots));
    }
    if (states.usedPages() != states.snapshotPages() || states.committedPages() != 0) {
      throw new AssertionError(
          "%d pages are taken, %d of them by snapshots, and %d committed"
              .formatted(states.usedPages(), states.snapshotPages(), states.committedPages()));
    }
  }

  @Override
  public void close() {
    if (inFlight != 0) {
      breach("the model was closed with a pass in flight");
    }
    closed = true;
    device.close();
  }

  private final class HostAccess implements ScriptedDeviceState.InFlight {
    @Override
    public void page(int page, boolean isWritten) {
      for (Pass pass : passesInFlight) {
        if ((isWritten ? pass.used : pass.written).contains(page)) {
          breach("page " + page + " was read or written with a pass in flight that uses it");
        }
      }
    }

    @Override
    public void slot(ScriptedDeviceState.Sequence sequence) {
      for (Pass pass : passesInFlight) {
        if (pass.copied.contains(sequence) || pass.made.contains(sequence)) {
          breach("a slot was written with a pass in flight that copies it");
        }
      }
    }
  }

  private final class Pass implements PendingPass {
    private final int step;
    private final int number;
    private final int[] tokens;
    private final int[] topLogprobs;
    private final List<ScriptedDeviceState.Sequence> sequences = new ArrayList<>();
    private final List<ScriptedDeviceState.Sequence> made = new ArrayList<>();
    private final List<ScriptedDeviceState.Sequence> copied = new ArrayList<>();
    private final Set<Integer> used = new HashSet<>();
    private final Set<Integer> written = new HashSet<>();
    private boolean awaited;

    Pass(int step, int number, int numLogitRows) {
      this.step = step;
      this.number = number;
      tokens = new int[numLogitRows];
      topLogprobs = new int[numLogitRows];
    }

    @Override
    public void await() {
      device.checkUsable("await");
      Gate gate = gates.get(step);
      if (gate != null) {
        gate.reached.fire();
        gate.released.await();
      }
      ScriptedModel.this.awaited.accept(number);
      if (!awaited) {
        awaited = true;
        inFlight--;
        passesInFlight.remove(this);
        sequences.forEach(sequence -> sequence.inFlight--);
      }
      Throwable failure = failingPasses.get(step);
      if (failure != null) {
        sequences.forEach(sequence -> sequence.lost = true);
        made.forEach(sequence -> sequence.lost = true);
        fail(failure);
      }
    }

    private int checked(int index) {
      if (!awaited || begun - step > 2) {
        breach("results of pass " + step + " were read too early or too late");
      }
      return index;
    }

    @Override
    public int token(int index) {
      return tokens[checked(index)];
    }

    @Override
    public float logprob(int index) {
      return topLogprobs[checked(index)] < 0 ? Float.NaN : ScriptedModel.logprob(tokens[index]);
    }

    @Override
    public int numTopLogprobs(int index) {
      return Math.max(0, topLogprobs[checked(index)]);
    }

    @Override
    public int topToken(int index, int rank) {
      return (tokens[checked(index)] + rank) % device.layout().vocabularySize();
    }

    @Override
    public float topLogprob(int index, int rank) {
      return ScriptedModel.logprob(topToken(index, rank));
    }

    @Override
    public long deviceNanos() {
      return 0;
    }
  }
}
