package dev.lily.engine.model;

import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The state of a {@link ScriptedModel}: per slot the tokens seen, per sampling slot what was set.
 * Lists the calls that came.
 */
public final class ScriptedDeviceState implements DeviceState {

  static final class Sequence {
    private int[] tokens = new int[16];
    private int size;
    boolean lost;
    int inFlight;

    int size() {
      return size;
    }

    int token(int position) {
      return tokens[position];
    }

    void add(int token) {
      if (size == tokens.length) {
        tokens = Arrays.copyOf(tokens, 2 * size);
      }
      tokens[size++] = token;
    }

    int[] toArray() {
      return Arrays.copyOf(tokens, size);
    }
  }

  static final class Sampler {
    final SamplingParameters parameters;
    int last = -1;
    int promptTokens;
    private final List<Integer> chosen = new ArrayList<>();
    private long @Nullable [] allowed;

    Sampler(SamplingParameters parameters) {
      this.parameters = parameters;
    }

    /** Notes a token that was chosen. */
    void choose(int token) {
      chosen.add(token);
      last = token;
    }

    /** The token, or the lowest one allowed if a mask forbids it. */
    int allow(int token) {
      if (allowed == null || (allowed[token >> 6] >> (token & 63) & 1) != 0) {
        return token;
      }
      for (int id = 0; id < allowed.length * Long.SIZE; id++) {
        if ((allowed[id >> 6] >> (id & 63) & 1) != 0) {
          return id;
        }
      }
      throw new AssertionError("The mask allows nothing");
    }
  }

  /** Breaks the test if a pass in flight uses what is read or written by the host. */
  interface InFlight {
    void page(int page, boolean isWritten);

    void slot(Sequence sequence);
  }

  private InFlight inFlight =
      new InFlight() {
        @Override
        public void page(int page, boolean isWritten) {}

        @Override
        public void slot(Sequence sequence) {}
      };

  private static final Sequence NOTHING = new Sequence();

  private final StateLayout layout;
  private final Consumer<String> breach;
  private final Sequence[] sequences;
  private final @Nullable Sampler[] samplers;
  private final int[][] pages;
  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final List<SamplingParameters> begun = new CopyOnWriteArrayList<>();
  private @Nullable Thread owner;
  private BiConsumer<Sequence, Sequence> made = (_, _) -> {};
  private final Map<String, Throwable> failures = new HashMap<>();
  private boolean closed;

  ScriptedDeviceState(StateLayout layout, Consumer<String> breach) {
    this.layout = layout;
    this.breach = breach;
    sequences = new Sequence[layout.numSlots()];
    Arrays.setAll(sequences, _ -> new Sequence());
    samplers = new Sampler[layout.numSamplingSlots()];
    pages = new int[layout.numPages()][layout.pageTokens()];
  }

  /** The tokens whose keys and values a page has, by row. */
  int[] page(int page) {
    return pages[page];
  }

  /** What was asked, in order, such as {@code clearSlot 3}. */
  public List<String> calls() {
    return calls;
  }

  /** The parameters of every sequence begun, in order. */
  public List<SamplingParameters> samplingBegun() {
    return begun;
  }

  /**
   * Makes the next call of a method throw.
   *
   * @param failure a {@link RuntimeException} or an {@link Error}
   */
  public void failNext(String method, Throwable failure) {
    failures.put(method, failure);
  }

  /** Says who is told of what is put in a slot: from what it was made, and what came of it. */
  void onMade(BiConsumer<Sequence, Sequence> listener) {
    made = listener;
  }

  void onHostAccess(InFlight check) {
    inFlight = check;
  }

  Sequence sequence(int slot) {
    return sequences[slot];
  }

  Sampler sampler(int slot) {
    Sampler sampler = slot < 0 ? null : samplers[slot];
    if (sampler == null) {
      breach.accept("sampling slot " + slot + " is used before it was begun");
      throw new AssertionError();
    }
    return sampler;
  }

  void checkUsable(String what) {
    if (closed) {
      breach.accept(what + " was called on a closed model");
    }
    if (owner == null) {
      owner = Thread.currentThread();
    } else if (owner != Thread.currentThread()) {
      breach.accept(what + " was called on " + Thread.currentThread() + ", not on " + owner);
    }
  }

  @Override
  public StateLayout layout() {
    return layout;
  }

  @Override
  public long bytes() {
    return 0;
  }

  @Override
  public void copySlot(int from, int to) {
    call("copySlot " + from + " " + to);
    if (sequences[to].inFlight > 0) {
      breach.accept("slot " + to + " was overwritten with a pass in flight");
    }
    Sequence copy = new Sequence();
    for (int token : sequences[from].toArray()) {
      copy.add(token);
    }
    copy.lost = sequences[from].lost;
    made.accept(sequences[from], copy);
    sequences[to] = copy;
  }

  @Override
  public void clearSlot(int slot) {
    call("clearSlot " + slot);
    if (sequences[slot].inFlight > 0) {
      breach.accept("slot " + slot + " was given away with a pass in flight");
    }
    Sequence empty = new Sequence();
    made.accept(NOTHING, empty);
    sequences[slot] = empty;
  }

  @Override
  public void copyPage(int from, int to) {
    call("copyPage " + from + " " + to);
    pages[to] = pages[from].clone();
  }

  @Override
  public String format() {
    return "scripted " + layout.format();
  }

  @Override
  public long pageBytes() {
    return (long) layout.pageTokens() * Integer.BYTES;
  }

  /** A slot's bytes are the number of tokens seen and the tokens. */
  @Override
  public long slotBytes() {
    return (1L + (long) layout.numPages() * layout.pageTokens()) * Integer.BYTES;
  }

  @Override
  public void readPage(int page, MemorySegment target) {
    call("readPage " + page);
    inFlight.page(page, false);
    target.copyFrom(MemorySegment.ofArray(pages[page]));
  }

  @Override
  public void writePage(int page, MemorySegment source) {
    call("writePage " + page);
    inFlight.page(page, true);
    pages[page] = new int[layout.pageTokens()];
    MemorySegment.ofArray(pages[page]).copyFrom(source);
  }

  @Override
  public void readSlot(int slot, long offset, MemorySegment target) {
    call("readSlot " + slot);
    if (sequences[slot].lost || sequences[slot].inFlight > 0) {
      breach.accept("slot " + slot + " was read lost or with a pass in flight");
    }
    MemorySegment.copy(slotWords(slot), offset, target, 0, target.byteSize());
  }

  @Override
  public void writeSlot(int slot, long offset, MemorySegment source) {
    call("writeSlot " + slot);
    if (sequences[slot].inFlight > 0) {
      breach.accept("slot " + slot + " was written with a pass in flight");
    }
    inFlight.slot(sequences[slot]);
    MemorySegment words = slotWords(slot);
    MemorySegment.copy(source, 0, words, offset, source.byteSize());
    Sequence sequence = new Sequence();
    int most = layout.numPages() * layout.pageTokens();
    for (int i = 0; i < Math.min(most, words.get(ValueLayout.JAVA_INT, 0)); i++) {
      sequence.add(words.getAtIndex(ValueLayout.JAVA_INT, 1 + i));
    }
    sequences[slot] = sequence;
  }

  private MemorySegment slotWords(int slot) {
    int[] words = new int[Math.toIntExact(slotBytes() / Integer.BYTES)];
    words[0] = sequences[slot].size;
    System.arraycopy(sequences[slot].tokens, 0, words, 1, sequences[slot].size);
    return MemorySegment.ofArray(words);
  }

  @Override
  public void beginSampling(int slot, SamplingParameters parameters, int[] promptTokens) {
    call("beginSampling " + slot);
    samplers[slot] = new Sampler(parameters);
    begun.add(parameters);
  }

  @Override
  public void maskTokens(int slot, long @Nullable [] allowed) {
    call("maskTokens " + slot + (allowed == null ? " none" : " some"));
    sampler(slot).allowed = allowed == null ? null : allowed.clone();
  }

  @Override
  public void rewindSampling(int slot, int[] chosen, int count, int kept) {
    call("rewindSampling %d %d %d".formatted(slot, count, kept));
    Sampler sampler = sampler(slot);
    int known = sampler.chosen.size();
    List<Integer> last = IntStream.range(0, count).mapToObj(i -> chosen[i]).toList();
    if (kept < 1
        || kept > count
        || count > known
        || !sampler.chosen.subList(known - count, known).equals(last)) {
      breach.accept("%d of %s are kept of %s".formatted(kept, last, sampler.chosen));
    }
    sampler.chosen.subList(known - count + kept, known).clear();
    sampler.last = sampler.chosen.getLast();
  }

  private void call(String call) {
    checkUsable(call);
    calls.add(call);
    ScriptedModel.fail(failures.remove(call.substring(0, call.indexOf(' '))));
  }

  @Override
  public void close() {
    closed = true;
  }
}
