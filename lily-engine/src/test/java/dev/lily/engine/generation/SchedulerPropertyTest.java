package dev.lily.engine.generation;

import static dev.lily.engine.generation.ManualScheduler.model;
import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.chat.Conversation;
import dev.lily.engine.chat.Message;
import dev.lily.engine.model.ScriptedModel;
import dev.lily.engine.model.ScriptedModel.Script;
import dev.lily.engine.sampling.SamplingParameters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** Whatever else runs, each session gets the tokens it would get alone. */
class SchedulerPropertyTest {

  /**
   * @param arrival turn before which it is submitted
   * @param cancelAfter turns after arrival; never if negative
   * @param pauseEvery its consumer is not ready in turns divisible by this; 0 for always ready
   */
  record Job(
      int seed,
      int promptLength,
      int maxTokens,
      int minTokens,
      int arrival,
      int cancelAfter,
      int pauseEvery) {}

  /** Every token depends on all before it; one in about twenty ends the answer. */
  private static final Script CHAIN =
      (tokens, promptTokens) -> {
        int hash = Arrays.hashCode(tokens) & Integer.MAX_VALUE;
        return hash % 20 == 0 ? Nano.END : hash % Nano.END;
      };

  @Provide
  Arbitrary<Job> jobs() {
    return Combinators.combine(
            Arbitraries.integers().between(0, 1_000_000),
            Arbitraries.integers().between(1, 60),
            Arbitraries.integers().between(1, 30),
            Arbitraries.integers().between(0, 6),
            Arbitraries.integers().between(0, 30),
            Arbitraries.integers().between(-20, 20),
            Arbitraries.integers().between(0, 4))
        .as(
            (seed, prompt, max, min, arrival, cancel, pause) ->
                new Job(
                    seed,
                    prompt,
                    max,
                    Math.min(min, max),
                    arrival,
                    cancel,
                    pause == 1 ? 0 : pause));
  }

  @Property(tries = 300)
  void everySessionGetsWhatItWouldGetAlone(
      @ForAll @Size(min = 1, max = 14) List<@From("jobs") Job> jobs,
      @ForAll @IntRange(min = 1, max = 2) int depth,
      @ForAll @IntRange(min = 1, max = 5) int places,
      @ForAll @IntRange(min = 1, max = 40) int chunk,
      @ForAll @IntRange(min = 12, max = 40) int pages,
      @ForAll @IntRange(min = 1, max = 2000) int maxStepMicros,
      @ForAll int speeds) {
    ScriptedModel model = model(CHAIN).maxPassesInFlight(depth).maxRows(48).pages(pages, 8).build();
    List<Heard> together =
        run(model, places, chunk, Duration.ofNanos(1000L * maxStepMicros), speeds, jobs);
    for (int i = 0; i < jobs.size(); i++) {
      Job job = jobs.get(i);
      Heard alone = alone(job);
      Heard shared = together.get(i);
      if (shared.reason == FinishReason.CANCELLED) {
        assertThat(job.cancelAfter).isNotNegative();
        assertThat(shared.tokens).isEqualTo(alone.tokens.subList(0, shared.tokens.size()));
      } else {
        assertThat(shared).as("%s", job).isEqualTo(alone);
      }
    }
  }

  /** What a session's listener was told. */
  record Heard(List<Integer> tokens, String text, FinishReason reason) {}

  private final Map<Job, Heard> knownAlone = new HashMap<>();

  private Heard alone(Job job) {
    return knownAlone.computeIfAbsent(
        job,
        j ->
            run(
                    model(CHAIN).build(),
                    1,
                    256,
                    Duration.ofDays(1),
                    0,
                    List.of(new Job(j.seed, j.promptLength, j.maxTokens, j.minTokens, 0, -1, 0)))
                .getFirst());
  }

  /** Passes take random times, so that slices of prompts are of random lengths. */
  private static List<Heard> run(
      ScriptedModel model,
      int places,
      int chunk,
      Duration maxStepTime,
      int speeds,
      List<Job> jobs) {
    Random random = new Random(speeds);
    long[] now = {0};
    model.onPasses(_ -> {}, _ -> now[0] += 1000L * random.nextInt(3000));
    Scheduler scheduler =
        new Scheduler(
            model,
            Nano.TOKENIZER,
            new int[] {Nano.END},
            new SchedulerOptions(
                places,
                jobs.size(),
                chunk,
                4096,
                Duration.ofDays(1),
                PrefixCacheOptions.OFF,
                null,
                SpeculationOptions.OFF,
                maxStepTime),
            () -> now[0]);
    List<Recorder> recorders = new ArrayList<>();
    jobs.forEach(_ -> recorders.add(new Recorder()));
    int remaining = jobs.size();
    for (int turn = 0; remaining > 0; turn++) {
      assertThat(turn).as("turns").isLessThan(10_000);
      for (int i = 0; i < jobs.size(); i++) {
        Job job = jobs.get(i);
        Recorder recorder = recorders.get(i);
        if (job.arrival == turn) {
          submit(scheduler, job, recorder);
        }
        if (job.cancelAfter >= 0 && job.arrival + job.cancelAfter == turn) {
          recorder.handle().cancel();
        }
        recorder.ready(job.pauseEvery == 0 || turn % job.pauseEvery != 0);
      }
      scheduler.turn();
      remaining = (int) recorders.stream().filter(r -> !r.hasEnded()).count();
    }
    while (scheduler.turn() == 0) {
      assertThat(scheduler.counters().running()).isZero();
    }
    model.assertClean();
    return recorders.stream()
        .map(
            r ->
                new Heard(
                    r.logprobs().stream().map(TokenLogprob::id).toList(),
                    r.text(),
                    r.completed().reason()))
        .toList();
  }

  private static void submit(Scheduler scheduler, Job job, Recorder recorder) {
    int[] prompt = new int[job.promptLength];
    for (int i = 0; i < prompt.length; i++) {
      prompt[i] = (job.seed + 31 * i) % Nano.END;
    }
    recorder.submittedAs(
        scheduler.submit(
            GenerationRequest.builder(Conversation.of(new Message.User("x")))
                .maxTokens(job.maxTokens)
                .minTokens(job.minTokens)
                .build(),
            new EncodedPrompt(prompt, false),
            new SamplingParameters(0, 0, 1, 0, 0, 0, 1, new int[0], new float[0], 1, 0),
            recorder));
  }
}
