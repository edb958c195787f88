package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.RecordedContinuation.Comparison;
import dev.lily.engine.RecordedContinuation.Step;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The comparison itself, on lily-nano. */
class RecordedContinuationTest {
  private static final List<Integer> PROMPT = List.of(72, 101, 108, 108, 111, 44, 32);
  private static final int STEPS = 6;

  private static LoadedModel nano() {
    return ModelLoader.load(
        EngineOptions.builder(Path.of(System.getProperty("lily.nano.dir")))
            .backend("cpu")
            .contextLength(64)
            .maxSessions(1)
            .prefillChunk(4)
            .build());
  }

  @Test
  void findsAModelLikeItsOwnRecording() {
    try (LoadedModel nano = nano()) {
      RecordedContinuation own = RecordedContinuation.record(nano.model(), PROMPT, STEPS);
      Comparison comparison = own.compare(nano.model());
      assertThat(comparison.wrong()).isEmpty();
      assertThat(comparison.medianDifference()).isZero();
      assertThat(comparison.largestDifference()).isZero();
      assertThat(comparison.decoded()).isEqualTo(STEPS);
      assertThat(comparison.decodingEndsRightly()).isTrue();
    }
  }

  @Test
  void findsATokenThatDiffersWhereTheChoiceBinds() {
    try (LoadedModel nano = nano()) {
      RecordedContinuation own = RecordedContinuation.record(nano.model(), PROMPT, STEPS);
      Comparison comparison = withOtherStep(own, 2, 3.0).compare(nano.model());
      assertThat(comparison.wrong()).singleElement().asString().startsWith("step 2 chose");
      assertThat(comparison.decoded()).isEqualTo(2);
      assertThat(comparison.decodingEndsRightly()).isFalse();
      assertThat(comparison.largestDifference()).isPositive();
    }
  }

  @Test
  void letsRoundingDecideWhereTheChoiceDoesNotBind() {
    try (LoadedModel nano = nano()) {
      RecordedContinuation own = RecordedContinuation.record(nano.model(), PROMPT, STEPS);
      Comparison comparison = withOtherStep(own, STEPS - 1, 0.1).compare(nano.model());
      assertThat(comparison.wrong()).isEmpty();
      assertThat(comparison.decoded()).isEqualTo(STEPS - 1);
      assertThat(comparison.decodingEndsRightly()).isTrue();
    }
  }

  /** The recording with the second likeliest token chosen in one place, and a margin given. */
  private static RecordedContinuation withOtherStep(
      RecordedContinuation recorded, int index, double margin) {
    List<Step> steps = new ArrayList<>(recorded.steps());
    List<Integer> top = new ArrayList<>(steps.get(index).top());
    List<Double> logprobs = new ArrayList<>(steps.get(index).logprobs());
    int other = top.remove(1);
    top.addFirst(other);
    logprobs.set(1, logprobs.getFirst() - margin);
    steps.set(index, new Step(other, top, logprobs));
    return new RecordedContinuation(recorded.prompt(), steps);
  }

  @Test
  void readsTheRecordingsOfTheFullModel() {
    RecordedContinuation raw = RecordedContinuation.read("/goldens/golden_35b_raw.json");
    assertThat(raw.prompt()).containsExactly(760, 6511, 314, 9338, 369);
    assertThat(raw.steps()).hasSize(64);
    assertThat(raw.steps().getFirst().top()).hasSize(16).startsWith(11751, 264);
    assertThat(raw.contextLength()).isEqualTo(69);
  }
}
