package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.saying;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.model.ScriptedModel;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is kept on disk, found again and given up, over a model that follows a script. */
class DiskTierTest {
  private static final int START = Nano.TOKENIZER.addedToken("<|im_start|>").orElseThrow();
  static final int PAGE = 8;
  private static final long MUCH = 1L << 40;

  @TempDir private Path directory;
  private final ManualDisk disk = new ManualDisk();
  private ManualScheduler scheduler;

  static ScriptedModel.Builder model(int snapshots) {
    return saying("ok").maxSequences(4).pages(200, PAGE).snapshots(snapshots);
  }

  private void open(ScriptedModel.Builder model, long diskBytes, String identity) {
    PrefixCacheOptions options =
        new PrefixCacheOptions(
            100_000, 100, PAGE, 0, false, disk.options(directory, diskBytes, identity));
    scheduler =
        new ManualScheduler(
            model.build(), new SchedulerOptions(4, 64, 32, 400, Duration.ofSeconds(60), options));
  }

  private void open(int snapshots) {
    open(model(snapshots), MUCH, "a model");
  }

  @AfterEach
  void close() {
    disk.release();
    stop();
    assertThat(temporaryFiles()).isEmpty();
  }

  private void stop() {
    scheduler.scheduler().endBatcher();
    scheduler.assertClean();
  }

  private static int[] message(int seed, int length) {
    return IntStream.range(0, length).map(i -> i == 0 ? START : 300 + seed).toArray();
  }

  private static int[] prompt(int[]... messages) {
    return Arrays.stream(messages).flatMapToInt(Arrays::stream).toArray();
  }

  /** A prompt whose first message is kept, and nothing else. */
  static int[] prompt(int seed) {
    return prompt(message(seed, 20), message(9, 5));
  }

  private Recorder submit(int[] prompt) {
    return scheduler.submit(prompt, fields -> fields.maxTokens(4));
  }

  private int cached(int[] prompt) {
    Recorder recorder = submit(prompt);
    scheduler.finish();
    assertThat(recorder.text()).isEqualTo("ok");
    return recorder.completed().usage().cachedTokens();
  }

  private DiskCounters counters() {
    return scheduler.scheduler().counters().disk();
  }

  private List<Path> files(String suffix) {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(file -> file.toString().endsWith(suffix)).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private List<Path> entries() {
    return files(".entry");
  }

  private List<Path> temporaryFiles() {
    return files(".tmp");
  }

  @Test
  void whatLeftMemoryIsReadBackOnceAndIsThenInMemory() {
    open(2);
    for (int seed = 1; seed <= 5; seed++) {
      assertThat(cached(prompt(seed))).isZero();
    }
    assertThat(counters().writes()).isEqualTo(5);
    assertThat(counters().dropped()).isZero();
    assertThat(cached(prompt(1))).isEqualTo(20);
    assertThat(counters().hits()).isEqualTo(1);
    assertThat(cached(prompt(1))).isEqualTo(20);
    assertThat(counters().hits()).as("found in memory").isEqualTo(1);
    assertThat(counters().entries()).isEqualTo(5);
    assertThat(counters().bytes())
        .isEqualTo(entries().stream().mapToLong(file -> file.toFile().length()).sum());
  }

  @Test
  void isFoundAfterARestartWithAnotherContextAndNotByAnotherModel() {
    open(4);
    int[] deep = prompt(message(1, 20), message(2, 30), message(3, 30), message(9, 5));
    cached(deep);
    stop();
    open(saying("ok").maxSequences(4).pages(60, PAGE).snapshots(2), MUCH, "a model");
    assertThat(counters().entries()).isEqualTo(3);
    assertThat(cached(deep)).as("another size of slots is another format").isZero();
    stop();
    open(model(4), MUCH, "another model");
    assertThat(cached(deep)).isZero();
    stop();
    open(model(7), MUCH, "a model");
    assertThat(cached(deep)).isEqualTo(80);
    assertThat(cached(prompt(message(1, 20), message(4, 5)))).isEqualTo(20);
  }

  @Test
  void pagesThatAreSharedAreWrittenOnce() {
    open(8);
    int[] system = message(1, 10 * PAGE);
    cached(prompt(system, message(2, 5)));
    long first = entries().getFirst().toFile().length();
    for (int user = 3; user < 7; user++) {
      cached(prompt(system, message(user, PAGE), message(9, 5)));
    }
    assertThat(entries()).hasSize(5);
    assertThat(entries().stream().map(file -> file.toFile().length()).sorted().toList())
        .as("one page in place of ten or eleven, and a token list that is longer")
        .isEqualTo(
            List.of(
                first - 9 * (PAGE * 4 + 4) + PAGE * 4,
                first - 9 * (PAGE * 4 + 4) + PAGE * 4,
                first - 9 * (PAGE * 4 + 4) + PAGE * 4,
                first - 9 * (PAGE * 4 + 4) + PAGE * 4,
                first));
    stop();
    open(8);
    assertThat(cached(prompt(system, message(4, PAGE), message(9, 5)))).isEqualTo(11 * PAGE);
    int used = scheduler.model().states().usedPages();
    assertThat(cached(prompt(system, message(6, PAGE), message(9, 5)))).isEqualTo(11 * PAGE);
    assertThat(scheduler.model().states().usedPages())
        .as("what is in memory of the beginning is not read again")
        .isEqualTo(used + 1);
  }

  @Test
  void theFilesStayWithinTheirBytesAndASharedBeginningOutlivesItsBranches() {
    open(1);
    cached(prompt(1));
    long one = entries().getFirst().toFile().length();
    stop();
    open(model(2), 4 * one, "a model");
    int[] system = message(1, 20);
    for (int user = 2; user < 12; user++) {
      assertThat(cached(prompt(system, message(user, 20), message(9, 5)))).isEqualTo(20);
      assertThat(counters().bytes()).isLessThanOrEqualTo(4 * one).isPositive();
    }
    stop();
    open(model(2), 4 * one, "a model");
    assertThat(counters().entries()).isEqualTo(3);
    assertThat(cached(prompt(system, message(11, 20), message(9, 5)))).isEqualTo(40);
    assertThat(cached(prompt(system, message(2, 20), message(9, 5)))).isEqualTo(20);
    stop();
    open(model(2), one, "another model");
    assertThat(cached(prompt(5))).isZero();
    assertThat(counters().entries()).as("other models' files leave first").isEqualTo(1);
    assertThat(entries()).hasSize(1);
  }

  @Test
  void whatIsLargerThanTheDiskMayHoldIsNotWritten() {
    open(model(2), 1000, "a model");
    assertThat(cached(prompt(1))).isZero();
    assertThat(entries()).isEmpty();
    assertThat(counters().dropped()).isEqualTo(1);
    assertThat(cached(prompt(1))).isEqualTo(20);
  }

  @Test
  void aWriterThatFallsBehindCostsSnapshotsNotTime() {
    open(2);
    disk.hold();
    for (int seed = 1; seed <= 6; seed++) {
      assertThat(cached(prompt(seed))).isZero();
    }
    assertThat(counters().dropped()).isPositive();
    disk.release();
    scheduler.finish();
    assertThat(counters().writes() + counters().dropped()).isEqualTo(6);
    assertThat(cached(prompt(6))).isEqualTo(20);
  }

  @Test
  void requestsBesideOneThatIsReadFromDiskGoOn() {
    open(4);
    cached(prompt(1));
    stop();
    open(4);
    disk.hold();
    Recorder waiting = submit(prompt(1));
    Recorder other = submit(prompt(2));
    scheduler.runUntilIdle();
    assertThat(other.completed().usage().cachedTokens()).isZero();
    assertThat(waiting.hasEnded()).isFalse();
    assertThat(disk.waiting()).isPositive();
    disk.release();
    scheduler.finish();
    assertThat(waiting.completed().usage().cachedTokens()).isEqualTo(20);
  }

  @Test
  void usersOfOnePromptWaitForOneReading() {
    open(4);
    cached(prompt(1));
    stop();
    open(4);
    disk.hold();
    Recorder first = submit(prompt(1));
    Recorder second = submit(prompt(1));
    scheduler.runUntilIdle();
    disk.release();
    scheduler.finish();
    assertThat(first.completed().usage().cachedTokens()).isEqualTo(20);
    assertThat(second.completed().usage().cachedTokens()).isEqualTo(20);
    assertThat(counters().hits()).isEqualTo(2);
    assertThat(scheduler.scheduler().counters().cacheSnapshots()).isEqualTo(1);
  }

  @Test
  void aRequestCancelledWhileItIsReadFromDiskEndsAtOnceAndTheNextOneFindsItInMemory() {
    open(4);
    cached(prompt(1));
    stop();
    open(4);
    disk.hold();
    Recorder cancelled = submit(prompt(1));
    scheduler.runUntilIdle();
    cancelled.handle().cancel();
    scheduler.runUntilIdle();
    assertThat(cancelled.completed().reason()).isEqualTo(FinishReason.CANCELLED);
    disk.release();
    scheduler.finish();
    assertThat(cached(prompt(1))).isEqualTo(20);
    assertThat(counters().hits()).isZero();
  }

  @Test
  void aDiskThatDoesNotAnswerIsGivenUpAndThePromptIsRead() {
    open(4);
    cached(prompt(1));
    stop();
    open(4);
    disk.hold();
    Recorder waiting = submit(prompt(1));
    long wait = scheduler.runUntilIdle();
    assertThat(Duration.ofNanos(wait)).isEqualTo(Duration.ofSeconds(10));
    assertThat(waiting.hasEnded()).isFalse();
    scheduler.advance(Duration.ofSeconds(10));
    scheduler.finish();
    assertThat(waiting.completed().usage().cachedTokens()).isZero();
    assertThat(counters().problem()).contains("does not answer");
    assertThat(cached(prompt(1))).as("in memory").isEqualTo(20);
  }

  @Test
  void aFullDiskCostsNoRequestAndIsTriedAgainLater() {
    open(4);
    IOException full = new IOException("No space left on device");
    for (Runnable fault :
        List.<Runnable>of(
            () -> disk.failWriting(full),
            () -> disk.failCreating(full),
            () -> disk.failRenaming(full),
            () -> disk.usableBytes(1 << 20))) {
      fault.run();
      long failures = counters().failures();
      int seed = 20 + (int) failures;
      assertThat(cachedBesideAPause(prompt(seed))).isZero();
      assertThat(counters().failures()).isEqualTo(failures + 1);
      assertThat(counters().problem()).contains("tried again every minute");
      assertThat(temporaryFiles()).isEmpty();
      assertThat(cachedBesideAPause(prompt(seed))).as("in memory").isEqualTo(20);
      disk.failWriting(null);
      disk.failCreating(null);
      disk.failRenaming(null);
      disk.usableBytes(Long.MAX_VALUE);
      scheduler.advance(Duration.ofSeconds(60));
      cached(prompt(seed + 10));
      assertThat(counters().problem()).isEmpty();
    }
    assertThat(counters().writes()).isEqualTo(entries().size());
  }

  /** While writing pauses, a snapshot waits for the clock. */
  private int cachedBesideAPause(int[] prompt) {
    Recorder recorder = submit(prompt);
    scheduler.runUntilIdle();
    scheduler.assertClean();
    return recorder.completed().usage().cachedTokens();
  }

  @Test
  void aFileThatCannotBeReadIsForgottenWithAllThatContinueIt() {
    open(4);
    int[] deep = prompt(message(1, 20), message(2, 20), message(9, 5));
    cached(deep);
    stop();
    open(4);
    disk.failReading(new IOException("Input/output error"));
    assertThat(cached(deep)).isZero();
    disk.failReading(null);
    assertThat(counters().failures()).isPositive();
    assertThat(cached(deep)).as("in memory").isEqualTo(40);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void aDeviceErrorLeavesWhatIsOnDisk(int passesInFlight) {
    open(model(8).maxPassesInFlight(passesInFlight), MUCH, "a model");
    cached(prompt(1));
    assertThat(counters().writes()).isEqualTo(1);
    scheduler.model().failPass(scheduler.steps().size(), new BackendException("scripted"));
    Recorder failed = submit(prompt(2));
    scheduler.finish();
    assertThat(failed.failure()).isInstanceOf(DeviceFailureException.class);
    assertThat(scheduler.scheduler().counters().cacheSnapshots()).isZero();
    assertThat(cached(prompt(1))).isEqualTo(20);
    assertThat(cached(prompt(2))).as("was never written").isZero();
  }

  @Test
  void memoryThatIsShortForWhatIsReadCostsNoRequest() {
    open(4);
    cached(prompt(1));
    stop();
    open(4);
    scheduler.model().device().failNext("writePage", new OutOfMemoryError("scripted"));
    assertThat(cached(prompt(1))).isZero();
    assertThat(counters().failures()).isEqualTo(1);
    stop();
    open(4);
    scheduler.model().device().failNext("readSlot", new BackendException("scripted"));
    assertThat(cached(prompt(2))).isZero();
    assertThat(cached(prompt(1))).isEqualTo(20);
  }

  @Test
  void pagesThatAreReadIntoAreGivenUpForARunningRequest() {
    ScriptedModel.Builder small = saying("ok").maxSequences(4).pages(12, PAGE).snapshots(2);
    open(small, MUCH, "a model");
    int[] half = prompt(message(1, 6 * PAGE), message(9, 5));
    cached(half);
    stop();
    open(saying("ok").maxSequences(4).pages(12, PAGE).snapshots(2), MUCH, "a model");
    disk.hold();
    Recorder cancelled = submit(half);
    scheduler.runUntilIdle();
    assertThat(scheduler.model().states().snapshots()).isEqualTo(1);
    cancelled.handle().cancel();
    Recorder large = submit(message(2, 11 * PAGE));
    scheduler.runUntilIdle();
    assertThat(large.text()).isEqualTo("ok");
    assertThat(scheduler.model().states().snapshots()).isLessThanOrEqualTo(1);
    disk.release();
    scheduler.finish();
  }

  @Test
  void closingWritesWhatIsNotWrittenYet() {
    open(4);
    disk.hold();
    cached(prompt(1));
    cached(prompt(2));
    assertThat(entries()).isEmpty();
    disk.release();
    stop();
    assertThat(entries()).hasSize(2);
    open(4);
    assertThat(cached(prompt(2))).isEqualTo(20);
  }

  @Test
  void aProcessKilledWhileItWritesLeavesWhatItHadWritten() throws Exception {
    Process writer =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                "-Dlily.nano.dir=" + System.getProperty("lily.nano.dir"),
                KilledWriter.class.getName(),
                directory.toString())
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    try (BufferedReader lines = writer.inputReader()) {
      assertThat(lines.lines().anyMatch(KilledWriter.WRITING::equals)).isTrue();
    } finally {
      writer.destroyForcibly().waitFor();
    }
    assertThat(entries()).hasSize(2);
    assertThat(temporaryFiles()).hasSize(1);
    open(4);
    assertThat(temporaryFiles()).isEmpty();
    assertThat(counters().entries()).isEqualTo(2);
    assertThat(counters().failures()).isZero();
    assertThat(cached(prompt(1))).isEqualTo(20);
    assertThat(cached(prompt(2))).isEqualTo(20);
    assertThat(cached(prompt(3))).isZero();
    assertThat(entries()).hasSize(3);
  }

  @Test
  void aDamagedFileCostsItsRequestAReadingAndNobodyElseAnything() throws IOException {
    open(4);
    int[] deep = prompt(message(1, 20), message(2, 20), message(9, 5));
    cached(deep);
    cached(prompt(3));
    stop();
    for (Path entry : entries()) {
      byte[] bytes = Files.readAllBytes(entry);
      bytes[bytes.length / 2] ^= 1; // in the slot
      Files.write(entry, bytes);
    }
    open(4);
    assertThat(counters().entries()).isEqualTo(3);
    Recorder first = submit(deep);
    Recorder second = submit(prompt(3));
    Recorder third = submit(prompt(4));
    scheduler.finish();
    for (Recorder each : List.of(first, second, third)) {
      assertThat(each.text()).isEqualTo("ok");
      assertThat(each.completed().usage().cachedTokens()).isZero();
    }
    assertThat(counters().failures()).isEqualTo(3);
    assertThat(counters().writes()).isEqualTo(4);
    assertThat(cached(deep)).isEqualTo(40);
  }

  @Test
  void aDirectoryThatIsInUseOrNoneIsDoneWithout() throws IOException {
    open(4);
    ManualScheduler first = scheduler;
    open(4);
    assertThat(counters().problem()).contains("another engine of this process uses it");
    assertThat(cached(prompt(1))).isZero();
    assertThat(cached(prompt(1))).isEqualTo(20);
    stop();
    scheduler = first;
    stop();
    Path file = Files.createFile(directory.resolve("file"));
    PrefixCacheOptions options =
        new PrefixCacheOptions(1000, 100, PAGE, 0, false, disk.options(file, MUCH, "a model"));
    scheduler =
        new ManualScheduler(
            model(2).build(), new SchedulerOptions(4, 64, 32, 400, Duration.ofDays(1), options));
    assertThat(counters().problem()).contains("cannot be used");
    assertThat(cached(prompt(1))).isZero();
  }
}
