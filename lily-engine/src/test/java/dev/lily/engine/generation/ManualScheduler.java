package dev.lily.engine.generation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Rows;
import dev.lily.engine.model.ScriptedModel.Script;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import java.util.function.UnaryOperator;

/** A scheduler without its thread: the test takes the turns and sets the clock. */
final class ManualScheduler {
  static final SamplingParameters GREEDY = SamplingParameters.of(SamplingOptions.GREEDY, 1, -1);
  static final Duration STALL = Duration.ofSeconds(60);

  private final ScriptedModel model;
  private final Scheduler scheduler;
  private long now = Long.MAX_VALUE - 5; // Nanosecond clocks may wrap.

  ManualScheduler(ScriptedModel model, SchedulerOptions options) {
    this(model, options, PromptLookup::new);
  }

  ManualScheduler(
      ScriptedModel model, SchedulerOptions options, Function<int[], DraftSource> drafts) {
    this.model = model;
    scheduler =
        new Scheduler(model, Nano.TOKENIZER, new int[] {Nano.END}, options, () -> now, drafts);
  }

  /** Eight places and a prefill chunk of 32 tokens in a window of 4096. */
  static ManualScheduler of(ScriptedModel model) {
    return new ManualScheduler(model, options(8, 64, 32));
  }

  static SchedulerOptions options(int maxSessions, int queueLimit, int prefillChunk) {
    return new SchedulerOptions(maxSessions, queueLimit, prefillChunk, 4096, STALL);
  }

  /** A model that says the text and then ends its turn. */
  static ScriptedModel.Builder saying(String text) {
    return model(Script.saying(answer(text)));
  }

  static ScriptedModel.Builder model(Script script) {
    return ScriptedModel.builder(script).vocabularySize(Nano.TOKENIZER.vocabularySize());
  }

  /** The ids of a text with the end token behind it. */
  static int[] answer(String text) {
    int[] ids = Nano.ids(text + "<|im_end|>");
    assertThat(ids[ids.length - 1]).isEqualTo(Nano.END);
    return ids;
  }

  /** A prompt of that many tokens, the first of which is {@code first}. */
  static int[] prompt(int first, int length) {
    int[] prompt = new int[length];
    for (int i = 0; i < length; i++) {
      prompt[i] = i == 0 ? first : 300 + i % 100;
    }
    return prompt;
  }

  Recorder submit(int[] prompt, UnaryOperator<GenerationRequest.Builder> fields) {
    return submit(prompt, false, fields, new Recorder());
  }

  Recorder submit(
      int[] prompt,
      boolean thinking,
      UnaryOperator<GenerationRequest.Builder> fields,
      Recorder listener) {
    GenerationRequest request =
        fields.apply(GenerationRequest.builder(Conversation.of(new Message.User("x")))).build();
    int topLogprobs = request.topLogprobs() == null ? -1 : request.topLogprobs();
    return listener.submittedAs(
        scheduler.submit(
            request,
            new EncodedPrompt(prompt, thinking),
            SamplingParameters.of(SamplingOptions.GREEDY, 1, topLogprobs),
            listener));
  }

  /**
   * Lets passes take time: as on a device that runs them one after the other, or on the host if
   * there is one at a time.
   */
  void taking(ToLongFunction<List<Rows>> nanos) {
    List<Long> ends = new ArrayList<>();
    model.onPasses(
        rows -> {
          boolean waits = !ends.isEmpty() && ends.getLast() - now > 0;
          ends.add((waits ? ends.getLast() : now) + nanos.applyAsLong(rows));
        },
        step -> now += Math.max(0, ends.get(step) - now));
  }

  /** The clock. */
  long now() {
    return now;
  }

  long turn() {
    return scheduler.turn();
  }

  void turns(int count) {
    for (int i = 0; i < count; i++) {
      turn();
    }
  }

  /**
   * Takes turns until only a signal or the clock can bring work.
   *
   * @return nanoseconds until something falls due
   */
  long runUntilIdle() {
    for (int i = 0; i < 100_000; i++) {
      long wait = turn();
      if (wait > 0) {
        return wait;
      }
    }
    throw new AssertionError("The scheduler does not come to rest");
  }

  /** Runs to the end and checks that every page and slot came back. */
  void finish() {
    assertThat(runUntilIdle()).isEqualTo(Nanos.FOREVER);
    assertClean();
  }

  void assertClean() {
    model.assertClean();
    Counters counters = scheduler.counters();
    assertThat(counters.running()).isZero();
    assertThat(scheduler.queued()).isZero();
    assertThat(counters.usedPages()).isZero();
    assertThat(counters.submitted())
        .isEqualTo(counters.completed() + counters.cancelled() + counters.failed());
  }

  void advance(Duration time) {
    now += time.toNanos();
  }

  List<List<Rows>> steps() {
    return model.steps();
  }

  ScriptedModel model() {
    return model;
  }

  Scheduler scheduler() {
    return scheduler;
  }
}
