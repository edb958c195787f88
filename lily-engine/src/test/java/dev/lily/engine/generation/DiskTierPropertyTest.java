package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.model;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import dev.lily.engine.sampling.SamplingParameters;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterContainer;

/**
 * Whatever leaves memory for the disk and comes back, in whatever order disk and engine work, each
 * session gets the tokens that it would get from an empty cache. The scripted model checks beside
 * that slots and pages hold the sequence's own tokens, and that no pass uses what is being read or
 * written.
 */
class DiskTierPropertyTest {
  private static final int START = Nano.TOKENIZER.addedToken("<|im_start|>").orElseThrow();
  private static long hits;

  /** Every token depends on all before it; one in about twelve ends the answer. */
  private static final Script CHAIN =
      (tokens, promptTokens) -> {
        int hash = Arrays.hashCode(tokens) & Integer.MAX_VALUE;
        return hash % 12 == 0 ? Nano.END : hash % Nano.END;
      };

  /**
   * A turn of one of a few conversations.
   *
   * @param edit messages forgotten before
   * @param arrival turns of the scheduler to take after it was submitted
   * @param jobs of the disk done meanwhile
   * @param event cancelled if 0; a new engine over the same directory if 1; reading fails if 2;
   *     writing fails if 3
   */
  record Turn(
      int conversation, int edit, int message, int length, int arrival, int jobs, int event) {}

  @Provide
  Arbitrary<Turn> turns() {
    return Combinators.combine(
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(0, 3),
            Arbitraries.integers().between(1, 40),
            Arbitraries.integers().between(0, 30),
            Arbitraries.integers().between(0, 60),
            Arbitraries.integers().between(0, 15))
        .as(Turn::new);
  }

  @AfterContainer
  static void somethingWasReadFromDisk() {
    assertThat(hits).as("the property is about something").isGreaterThan(100);
  }

  @Property(tries = 120)
  void everySessionGetsWhatItWouldGetFromAnEmptyCache(
      @ForAll @Size(min = 4, max = 24) List<@From("turns") Turn> turns,
      @ForAll @IntRange(min = 1, max = 2) int depth,
      @ForAll @IntRange(min = 1, max = 4) int snapshots,
      @ForAll @IntRange(min = 34, max = 80) int pages,
      @ForAll @IntRange(min = 1, max = 30) int chunk,
      @ForAll @IntRange(min = 200, max = 2000) int budget,
      @ForAll @IntRange(min = 4_000, max = 60_000) int diskBudget,
      @ForAll @IntRange(min = -240, max = 40) int failing)
      throws IOException {
    Path directory = Files.createTempDirectory("lily-disk");
    try {
      new Run(directory, depth, snapshots, pages, chunk, budget, diskBudget, failing).run(turns);
    } finally {
      try (Stream<Path> files = Files.walk(directory)) {
        for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(file);
        }
      }
    }
  }

  /** One try. */
  private static final class Run {
    private final ManualDisk disk = new ManualDisk();
    private final Path directory;
    private final int depth;
    private final int snapshots;
    private final int pages;
    private final int chunk;
    private final int budget;
    private final int diskBudget;
    private final List<int[]> prompts = new ArrayList<>();
    private final List<Recorder> recorders = new ArrayList<>();
    private ScriptedModel model;
    private Scheduler scheduler;
    private boolean mayFail;

    Run(
        Path directory,
        int depth,
        int snapshots,
        int pages,
        int chunk,
        int budget,
        int diskBudget,
        int failing) {
      this.directory = directory;
      this.depth = depth;
      this.snapshots = snapshots;
      this.pages = pages;
      this.chunk = chunk;
      this.budget = budget;
      this.diskBudget = diskBudget;
      open();
      if (failing >= 0) {
        mayFail = true;
        model.failPass(failing, new BackendException("scripted"));
      }
    }

    private void open() {
      model =
          model(CHAIN)
              .maxPassesInFlight(depth)
              .maxSequences(3)
              .maxRows(48)
              .pages(pages, 8)
              .snapshots(snapshots)
              .build();
      PrefixCacheOptions options =
          new PrefixCacheOptions(
              budget, 50, 8, 0, false, disk.options(directory, diskBudget, "a model"));
      scheduler =
          new Scheduler(
              model,
              Nano.TOKENIZER,
              new int[] {Nano.END},
              new SchedulerOptions(3, 64, chunk, 256, Duration.ofSeconds(1), options),
              () -> 0);
      assertThat(scheduler.counters().disk().problem()).isEmpty();
      disk.hold();
    }

    void run(List<Turn> turns) {
      List<List<int[]>> conversations = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        conversations.add(new ArrayList<>(List.of(message(i / 2, 20))));
      }
      for (Turn turn : turns) {
        List<int[]> history = conversations.get(turn.conversation);
        for (int i = 0; i < turn.edit && history.size() > 1; i++) {
          history.removeLast();
        }
        history.add(message(turn.message, turn.length));
        int[] prompt = history.stream().flatMapToInt(Arrays::stream).toArray();
        if (prompt.length > 200) {
          history.subList(1, history.size()).clear();
          continue;
        }
        take(turn, prompt);
      }
      finish();
    }

    private void take(Turn turn, int[] prompt) {
      if (turn.event == 1) {
        finish();
        open();
      }
      disk.failReading(turn.event == 2 ? new IOException("scripted") : null);
      disk.failWriting(turn.event == 3 ? new IOException("scripted") : null);
      prompts.add(prompt);
      Recorder recorder = submit(prompt);
      recorders.add(recorder);
      for (int i = 0; i < Math.max(turn.arrival, turn.jobs); i++) {
        if (i < turn.jobs) {
          disk.run();
        }
        if (i < turn.arrival) {
          scheduler.turn();
        }
      }
      if (turn.event == 0) {
        recorder.handle().cancel();
      }
      assertThat(model.states().snapshots()).isLessThanOrEqualTo(snapshots);
      assertThat(50 * model.states().snapshots() + 8 * model.states().snapshotPages())
          .as("bytes in memory")
          .isLessThanOrEqualTo(budget);
      assertThat(scheduler.counters().disk().bytes())
          .as("bytes on disk")
          .isLessThanOrEqualTo(diskBudget);
    }

    /** Ends all requests and the engine, and checks what they left. */
    private void finish() {
      for (int i = 0; recorders.stream().anyMatch(recorder -> !recorder.hasEnded()); i++) {
        assertThat(i).as("turns").isLessThan(20_000);
        scheduler.turn();
        disk.run();
      }
      disk.failReading(null);
      disk.failWriting(null);
      while (scheduler.turn() == 0 || disk.run()) {
        assertThat(scheduler.counters().running()).isZero();
      }
      model.assertClean();
      assertThat(scheduler.counters().cacheSnapshots()).isEqualTo(model.states().snapshots());
      hits += scheduler.counters().disk().hits();
      for (int i = 0; i < recorders.size(); i++) {
        check(prompts.get(i), recorders.get(i));
      }
      recorders.clear();
      prompts.clear();
      disk.release();
      scheduler.endBatcher();
      model.assertClean();
      mayFail = false;
    }

    private void check(int[] prompt, Recorder recorder) {
      List<Integer> heard = recorder.logprobs().stream().map(TokenLogprob::id).toList();
      GenerationEvent end = recorder.events().getLast();
      List<Integer> expected = alone(prompt);
      if (end instanceof GenerationEvent.Completed(FinishReason reason, Usage usage, Timings _)) {
        assertThat(usage.cachedTokens()).isLessThan(prompt.length);
        if (reason != FinishReason.CANCELLED) {
          assertThat(heard).isEqualTo(expected);
        }
      } else {
        assertThat(mayFail).isTrue();
      }
      assertThat(heard).isEqualTo(expected.subList(0, Math.min(heard.size(), expected.size())));
    }

    private Recorder submit(int[] prompt) {
      List<Integer> ids = Arrays.stream(prompt).boxed().toList();
      GenerationRequest request =
          GenerationRequest.builder(new RawPrompt.Tokens(ids)).maxTokens(20).topLogprobs(0).build();
      Recorder recorder = new Recorder();
      return recorder.submittedAs(
          scheduler.submit(
              request,
              new EncodedPrompt(prompt, false),
              SamplingParameters.of(request.sampling(), 1, 0),
              recorder));
    }
  }

  /** What the script says by itself. */
  private static List<Integer> alone(int[] prompt) {
    int[] tokens = prompt;
    List<Integer> answer = new ArrayList<>();
    while (answer.size() < 20) {
      int next = CHAIN.next(tokens, prompt.length);
      answer.add(next);
      if (next == Nano.END) {
        break;
      }
      tokens = Arrays.copyOf(tokens, tokens.length + 1);
      tokens[tokens.length - 1] = next;
    }
    return answer;
  }

  private static int[] message(int seed, int length) {
    Random random = new Random(seed);
    return IntStream.concat(IntStream.of(START), random.ints(length, 100, 105)).toArray();
  }
}
