package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Rows;
import dev.lily.engine.model.SequenceState;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the cache keeps, finds and gives back, over a model that follows a script. */
class PrefixCacheTest {
  private static final int START = Nano.TOKENIZER.addedToken("<|im_start|>").orElseThrow();
  private static final int PAGE = 8;
  private static final int SNAPSHOT_BYTES = 100;

  private ManualScheduler scheduler;

  private static ScriptedModel.Builder model(int pages, int snapshots) {
    return saying("ok").maxSequences(4).pages(pages, PAGE).snapshots(snapshots);
  }

  private void open(ScriptedModel.Builder model, long bytes, int interval) {
    open(model, new PrefixCacheOptions(bytes, SNAPSHOT_BYTES, PAGE, interval, false));
  }

  private void open(ScriptedModel.Builder model, PrefixCacheOptions options) {
    scheduler =
        new ManualScheduler(
            model.build(), new SchedulerOptions(4, 64, 32, 400, Duration.ofSeconds(60), options));
  }

  private static int[] message(int seed, int length) {
    return IntStream.range(0, length).map(i -> i == 0 ? START : 300 + seed).toArray();
  }

  private static int[] prompt(int[]... messages) {
    return Arrays.stream(messages).flatMapToInt(Arrays::stream).toArray();
  }

  private Recorder submit(int[] prompt) {
    return scheduler.submit(prompt, fields -> fields.maxTokens(4));
  }

  private int cached(int[] prompt) {
    Recorder recorder = submit(prompt);
    scheduler.finish();
    return recorder.completed().usage().cachedTokens();
  }

  private Counters counters() {
    return scheduler.scheduler().counters();
  }

  @Test
  void endsChunksWhereTheStateIsKept() {
    open(model(100, 8), 10_000, 0);
    submit(prompt(message(1, 10), message(2, 40), message(3, 5)));
    scheduler.finish();
    assertThat(scheduler.steps().stream().flatMap(List::stream).filter(rows -> !rows.decode()))
        .extracting(Rows::count)
        .containsExactly(10, 32, 8, 5);
    assertThat(counters().cacheSnapshots()).isEqualTo(2);
    assertThat(counters().cacheBytes()).isEqualTo(2 * SNAPSHOT_BYTES + 8 * PAGE);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void readsWhatPromptsThatArriveTogetherShareOnce(int passesInFlight) {
    open(model(100, 8).maxPassesInFlight(passesInFlight), 10_000, 0);
    int[] system = message(1, 75);
    List<Recorder> users =
        IntStream.range(2, 6).mapToObj(user -> submit(prompt(system, message(user, 5)))).toList();
    scheduler.finish();
    assertThat(users)
        .extracting(user -> user.completed().usage().cachedTokens())
        .containsExactly(0, 75, 75, 75);
    assertThat(counters().promptTokens()).isEqualTo(4 * 80);
    assertThat(counters().cachedTokens()).isEqualTo(3 * 75);
    assertThat(counters().cacheHits()).isEqualTo(3);
    assertThat(counters().cacheMisses()).isEqualTo(1);
  }

  @Test
  void waitsForNoReaderWhoseConsumerPauses() {
    open(model(100, 8), 10_000, 0);
    int[] system = message(1, 75);
    Recorder paused = submit(prompt(system, message(2, 5)));
    scheduler.turn();
    paused.ready(false);
    Recorder other = submit(prompt(system, message(3, 5)));
    scheduler.runUntilIdle();
    assertThat(other.completed().usage().cachedTokens()).isZero();
    paused.ready(true).handle().wake();
    scheduler.finish();
    assertThat(paused.completed().reason()).isEqualTo(FinishReason.STOP);
  }

  @Test
  void reportsProgressFromTheCachedTokensOn() {
    open(model(100, 8), 10_000, 0);
    int[] prompt = prompt(message(1, 20), message(2, 20), message(3, 5));
    assertThat(cached(prompt)).isZero();
    Recorder again = submit(prompt);
    scheduler.finish();
    assertThat(again.events().getFirst()).isEqualTo(new GenerationEvent.PromptProgress(45, 45));
    assertThat(again.completed().usage()).isEqualTo(new Usage(45, 2, 0, 40));
  }

  @Test
  void theOneUsedLongestAgoLeavesFirst() {
    open(model(100, 2), 10_000, 0);
    int[] a = prompt(message(1, 10), message(9, 3));
    int[] b = prompt(message(2, 10), message(9, 3));
    int[] c = prompt(message(3, 10), message(9, 3));
    assertThat(cached(a)).isZero();
    assertThat(cached(b)).isZero();
    assertThat(cached(a)).isEqualTo(10);
    assertThat(cached(c)).as("takes the place of b").isZero();
    assertThat(cached(a)).isEqualTo(10);
    assertThat(cached(b)).isZero();
    assertThat(counters().cacheEvictions()).isEqualTo(2);
  }

  @Test
  void aForkInUseOutlivesTheBranchesThatAreNot() {
    open(model(100, 3), 10_000, 0);
    int[] system = message(1, 10);
    for (int user = 2; user < 8; user++) {
      int[] first = prompt(system, message(user, 10), message(9, 3));
      assertThat(cached(first)).isEqualTo(user == 2 ? 0 : 10);
      assertThat(cached(first)).isEqualTo(20);
    }
  }

  @Test
  void aPinnedFirstMessageOutlivesAllOthers() {
    open(model(100, 4), new PrefixCacheOptions(10_000, SNAPSHOT_BYTES, PAGE, 0, true));
    int[] system = message(1, 10);
    cached(prompt(system, message(2, 10), message(9, 3)));
    for (int seed = 3; seed < 20; seed++) {
      cached(prompt(message(9, 5), message(seed, 10), message(9, 3)));
    }
    assertThat(cached(prompt(system, message(20, 10), message(9, 3)))).isEqualTo(10);
  }

  @Test
  void pinsNoMoreThanHalfOfTheSnapshots() {
    open(model(100, 4), new PrefixCacheOptions(10_000, SNAPSHOT_BYTES, PAGE, 0, true));
    for (int seed = 1; seed < 6; seed++) {
      cached(prompt(message(seed, 10), message(9, 3)));
    }
    cached(prompt(message(6, 10), message(7, 10), message(8, 10), message(9, 3)));
    assertThat(cached(prompt(message(6, 10), message(7, 10), message(8, 10), message(9, 3))))
        .isEqualTo(30);
    assertThat(cached(prompt(message(5, 10), message(9, 3)))).isEqualTo(10);
    assertThat(cached(prompt(message(1, 10), message(9, 3)))).isZero();
  }

  @Test
  void keepsWithinItsBytes() {
    open(model(100, 8), 2 * SNAPSHOT_BYTES + 6 * PAGE, 0);
    for (int seed = 1; seed < 8; seed++) {
      cached(prompt(message(seed, 2 * PAGE), message(9, 3)));
      assertThat(counters().cacheBytes()).isLessThanOrEqualTo(2 * SNAPSHOT_BYTES + 6 * PAGE);
    }
    assertThat(counters().cacheSnapshots()).isEqualTo(2);
    cached(prompt(message(8, 20 * PAGE), message(9, 3)));
    assertThat(counters().cacheSnapshots())
        .as("one that is larger alone changes nothing")
        .isEqualTo(2);
  }

  @Test
  void thousandsOfPromptsStayWithinTheBytesAndSharedBeginningsAreFound() {
    long bytes = 48 * SNAPSHOT_BYTES + 400 * PAGE;
    open(model(1000, 64), bytes, 0);
    int found = 0;
    for (int i = 0; i < 2000; i++) {
      int shared = i % 20;
      int cached = cached(prompt(message(shared, 3 * PAGE), message(1000 + i, 10), message(9, 3)));
      assertThat(counters().cacheBytes()).isPositive().isLessThanOrEqualTo(bytes);
      assertThat(scheduler.model().states().snapshotPages() * (long) PAGE)
          .isLessThanOrEqualTo(bytes);
      found += cached == 3 * PAGE ? 1 : 0;
    }
    assertThat(found).isEqualTo(2000 - 20);
    assertThat(counters().cacheEvictions()).isGreaterThan(1000);
    scheduler.model().failPass(scheduler.steps().size(), new BackendException("empties the cache"));
    submit(message(1, 4));
    scheduler.finish();
    assertThat(scheduler.model().states().usedPages()).isZero();
    assertThat(scheduler.model().states().usedSlots()).isZero();
    assertThat(counters().cacheBytes()).isZero();
  }

  @Test
  void givesItsPagesBackBeforeARequestHasToWait() {
    open(model(12, 8), 10_000, 0);
    for (int seed = 1; seed < 6; seed++) {
      cached(prompt(message(seed, 2 * PAGE), message(9, 3)));
    }
    assertThat(scheduler.model().states().snapshotPages()).isEqualTo(10);
    Recorder large = submit(message(6, 11 * PAGE));
    scheduler.finish();
    assertThat(large.completed().usage().promptTokens()).isEqualTo(11 * PAGE);
    assertThat(counters().cacheEvictions()).isPositive();
  }

  @Test
  void aPromptThatNeedsEveryPageIsContinuedFromItsOwnSnapshot() {
    open(model(12, 8), 10_000, 0);
    int[] prompt = prompt(message(1, 11 * PAGE + 1), message(9, 3));
    assertThat(cached(prompt)).isZero();
    assertThat(cached(prompt)).as("it was given up for the last page").isZero();
    int[] shorter = prompt(message(1, 10 * PAGE), message(9, 3));
    assertThat(cached(shorter)).isZero();
    assertThat(cached(shorter)).isEqualTo(10 * PAGE);
  }

  @Test
  void aFailedPassEmptiesIt() {
    ScriptedModel.Builder builder = model(100, 8);
    open(builder, 10_000, 0);
    int[] prompt = prompt(message(1, 30), message(2, 5));
    assertThat(cached(prompt)).isZero();
    int next = scheduler.steps().size();
    scheduler.model().failPass(next, new BackendException("scripted"));
    Recorder failed = submit(prompt);
    scheduler.finish();
    assertThat(failed.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(counters().cacheSnapshots()).isZero();
    assertThat(scheduler.model().states().usedPages()).isZero();
    assertThat(cached(prompt)).isZero();
    assertThat(cached(prompt)).isEqualTo(30);
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.generation.FailureTest#shortages")
  void memoryThatIsShortForASnapshotCostsNoRequest(Throwable shortage) {
    int snapshots = 8;
    open(model(100, snapshots), 10_000, 0);
    scheduler.model().device().failNext("copySlot", shortage);
    Recorder recorder = submit(prompt(message(1, 10), message(2, 40)));
    scheduler.finish();
    assertThat(recorder.text()).isEqualTo("ok");
    for (int i = 0; i < snapshots; i++) {
      cached(prompt(message(10 + i, 10), message(2, 5)));
    }
    assertThat(counters().cacheSnapshots()).isEqualTo(snapshots);
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.generation.FailureTest#shortages")
  void memoryThatIsShortForAPromptFoundInItFailsItsRequestOnly(Throwable shortage) {
    open(model(100, 8), 10_000, 0);
    int[] prompt = prompt(message(1, 10), message(2, 40));
    assertThat(cached(prompt)).isZero();
    scheduler.model().device().failNext("copySlot", shortage);
    Recorder unlucky = submit(prompt);
    Recorder other = submit(prompt(message(3, 10)));
    scheduler.finish();
    assertThat(unlucky.failure()).hasCause(shortage);
    assertThat(other.text()).isEqualTo("ok");
    assertThat(cached(prompt)).isEqualTo(prompt.length - 1);
  }

  @Test
  void whatACancelledPromptReadIsFoundButNoMore() {
    open(model(100, 8), 10_000, 0);
    int[] prompt = prompt(message(1, 30), message(2, 30), message(3, 5));
    Recorder cancelled = submit(prompt);
    scheduler.turn();
    cancelled.handle().cancel();
    scheduler.finish();
    assertThat(cancelled.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    assertThat(cached(prompt)).isEqualTo(30);
    assertThat(cached(prompt)).isEqualTo(60);
  }

  @Test
  void keepsTheStateEveryIntervalOfALongText() {
    open(model(100, 8), 10_000, 40);
    int[] long1 = prompt(message(1, 110), message(2, 5));
    assertThat(cached(long1)).isZero();
    int[] edited = long1.clone();
    edited[90] = 17;
    assertThat(cached(edited)).isEqualTo(80);
  }

  @Test
  void anAnswerThatIsCutOffOrDroppedInTheNextPromptIsNotKept() {
    open(model(100, 8), 10_000, 0);
    int[] prompt = prompt(message(1, 10), message(2, 5));
    Recorder recorder = submit(prompt);
    scheduler.finish();
    assertThat(recorder.completed().reason()).isEqualTo(FinishReason.STOP);
    assertThat(counters().cacheSnapshots()).isEqualTo(1);
    scheduler.submit(prompt, fields -> fields.maxTokens(4).preserveThinking(true));
    scheduler.finish();
    assertThat(counters().cacheSnapshots()).isEqualTo(2);
    int[] answer = ManualScheduler.answer("ok");
    int[] next = prompt(prompt, Arrays.copyOf(answer, answer.length - 1), message(3, 3));
    assertThat(cached(next)).isEqualTo(prompt.length + answer.length - 1);
  }

  @Test
  void isOffWithoutBytesOrWithoutSlots() {
    open(model(100, 8), 0, 10);
    int[] prompt = prompt(message(1, 30), message(2, 5));
    assertThat(cached(prompt)).isZero();
    assertThat(cached(prompt)).isZero();
    open(model(100, 0), 10_000, 10);
    assertThat(cached(prompt)).isZero();
    assertThat(cached(prompt)).isZero();
    assertThat(counters().cacheMisses()).isZero();
  }

  @Test
  void saysWhyAPromptIsNotFound() {
    ScriptedModel scripted = model(100, 2).build();
    PrefixCacheOptions options = new PrefixCacheOptions(10_000, SNAPSHOT_BYTES, PAGE, 0, false);
    PrefixCache cache =
        new PrefixCache(scripted.states(), options, START, new Counters(), new Passes(), null);
    int[] tokens = prompt(message(1, 10), message(2, 10), message(3, 5));
    keep(cache, scripted, tokens, 20);
    assertThat(cache.why(prompt(message(1, 10), message(4, 10)), 0))
        .isEqualTo(
            "it leaves what was read before at 11, with token 304 instead of 302, and there is no snapshot in between");
    assertThat(cache.why(prompt(message(1, 10), message(2, 10), message(5, 9)), 20))
        .isEqualTo("what was read before ends at 20");
    assertThat(cache.why(prompt(message(1, 10)), 0))
        .isEqualTo("the last snapshot before its end was taken");
    keep(cache, scripted, prompt(message(6, 10), message(7, 10)), 10);
    keep(cache, scripted, prompt(message(8, 10), message(9, 10)), 10);
    assertThat(cache.why(tokens, 0)).isEqualTo("a snapshot at 20 was evicted");
  }

  @Test
  void makesRoomWithinItsBytesBeforeItTakesMore() {
    // Room for two snapshots of a page each; the third one takes the slot of the first.
    ScriptedModel scripted = model(100, 3).build();
    int bytes = 2 * (SNAPSHOT_BYTES + PAGE);
    PrefixCacheOptions options = new PrefixCacheOptions(bytes, SNAPSHOT_BYTES, PAGE, 0, false);
    PrefixCache cache =
        new PrefixCache(scripted.states(), options, START, new Counters(), new Passes(), null);
    for (int i = 0; i < 5; i++) {
      keep(cache, scripted, prompt(message(i, PAGE)), PAGE);
    }
    assertThat(scripted.states().snapshots()).isEqualTo(2);
    assertThat(scripted.states().mostSlots()).as("two, and the one sequence's").isEqualTo(3);
    assertThat(scripted.states().mostPages()).isEqualTo(3);
  }

  @Test
  void countsPagesThatSnapshotsShareOnceWhenItMakesRoom() {
    ScriptedModel scripted = model(100, 3).build();
    int bytes = 2 * SNAPSHOT_BYTES + 3 * PAGE;
    PrefixCacheOptions options = new PrefixCacheOptions(bytes, SNAPSHOT_BYTES, PAGE, 0, false);
    Counters counters = new Counters();
    PrefixCache cache =
        new PrefixCache(scripted.states(), options, START, counters, new Passes(), null);
    int[] tokens = prompt(message(1, 3 * PAGE));
    try (SequenceState state = Objects.requireNonNull(scripted.states().open(3 * PAGE))) {
      state.reserve(2 * PAGE);
      state.advance(2 * PAGE);
      cache.keep(state, tokens);
      state.reserve(PAGE);
      state.advance(PAGE);
      cache.keep(state, tokens);
    }
    assertThat(scripted.states().snapshots()).as("2 and 3 pages, 2 of them the same").isEqualTo(2);
    assertThat(counters.cacheBytes()).isEqualTo(bytes);
    assertThat(counters.cacheEvictions()).isZero();
  }

  private static void keep(PrefixCache cache, ScriptedModel model, int[] tokens, int count) {
    try (SequenceState state = Objects.requireNonNull(model.states().open(count))) {
      state.reserve(count);
      state.advance(count);
      cache.keep(state, tokens);
    }
  }
}
