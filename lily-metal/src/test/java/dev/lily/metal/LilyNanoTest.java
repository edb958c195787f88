package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.qwen35moe.Goldens;
import dev.lily.engine.model.qwen35moe.ModelHarness;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import tools.jackson.databind.JsonNode;

/**
 * lily-nano on the double of Metal: against the reference values recorded with transformers in
 * float32, and what must hold bit for bit. Short texts only; the double has no GPU.
 */
@ExtendWith(MetalDoubleExtension.class)
class LilyNanoTest {
  /**
   * Of the range of a position's logits. Activations are bf16, which rounds to 2^-8, through 12
   * layers; measured are differences of up to 0.0025.
   */
  private static final double LOGIT_TOLERANCE = 0.01;

  /** Of the mean over all positions, in nats; measured: 0.0001. */
  private static final double NLL_TOLERANCE = 0.001;

  private static final JsonNode PROMPTS = Goldens.json("lily-nano/prompts.json").path("prompts");
  private static final int GREETING = 0;
  private static final int CAPITAL = 1;
  private static final int JSON = 3;
  private static final int MEMORY = 4;

  @BeforeEach
  void useKernels(MetalDouble metal) {
    metal.useFastKernels();
  }

  private static ModelHarness nano(int maxRows, int sequences) {
    return ModelHarness.nano(
        new MetalBackendProvider().open(BackendOptions.DEFAULT),
        new PassLimits(maxRows, sequences, maxRows, 512));
  }

  private static int[] ids(int prompt) {
    return Goldens.ints(PROMPTS.path(prompt).path("prompt_ids"));
  }

  @Test
  void logitsOfTheRecordedPositionsOfShortPromptsAgree() {
    Map<String, float[]> recorded = Goldens.tensors("lily-nano/logits.safetensors");
    int compared = 0;
    double largest = 0;
    try (ModelHarness nano = nano(64, 1)) {
      for (int p = 0; p < PROMPTS.size(); p++) {
        int[] ids = ids(p);
        if (ids.length > 64) {
          continue;
        }
        try (SequenceState state = nano.newSequence()) {
          float[][] logits = nano.logits(state, ids, 64);
          for (String position : PROMPTS.path(p).path("positions").propertyNames()) {
            float[] expected = recorded.get("prompt" + p + ".pos" + position);
            float[] actual = logits[Integer.parseInt(position)];
            String name = PROMPTS.path(p).path("name").asString() + " at " + position;
            double difference = difference(actual, expected);
            assertThat(difference).as(name).isLessThan(LOGIT_TOLERANCE);
            assertThat(argMax(actual)).as(name).isEqualTo(argMax(expected));
            largest = Math.max(largest, difference);
            compared++;
          }
        }
      }
    }
    System.out.printf(
        "lily-nano logits on Metal: largest difference %.4f of the range in %d positions%n",
        largest, compared);
    assertThat(compared).isEqualTo(24);
  }

  /** Largest difference as a share of the range of what is expected. */
  private static double difference(float[] actual, float[] expected) {
    double difference = 0;
    double least = Double.POSITIVE_INFINITY;
    double most = Double.NEGATIVE_INFINITY;
    for (int t = 0; t < expected.length; t++) {
      difference = Math.max(difference, Math.abs((double) actual[t] - expected[t]));
      least = Math.min(least, expected[t]);
      most = Math.max(most, expected[t]);
    }
    return difference / (most - least);
  }

  private static int argMax(float[] logits) {
    int best = 0;
    for (int t = 1; t < logits.length; t++) {
      best = logits[t] > logits[best] ? t : best;
    }
    return best;
  }

  @Test
  void teacherForcedLikelihoodOfShortTextsAgrees() {
    double sum = 0;
    double expected = 0;
    int positions = 0;
    try (ModelHarness nano = nano(96, 1)) {
      for (JsonNode text : Goldens.json("lily-nano/nll.json").path("texts")) {
        int[] ids = Goldens.ints(text.path("ids"));
        if (ids.length > 96) {
          continue;
        }
        try (SequenceState state = nano.newSequence()) {
          float[][] logits = nano.logits(state, ids, 96);
          for (int t = 0; t + 1 < ids.length; t++) {
            sum += negativeLogLikelihood(logits[t], ids[t + 1]);
            expected += text.path("nll").path(t).asDouble();
            positions++;
          }
        }
      }
    }
    System.out.printf(
        "lily-nano NLL on Metal: %.5f, recorded %.5f, over %d positions%n",
        sum / positions, expected / positions, positions);
    assertThat(positions).isEqualTo(236);
    assertThat(sum / positions).isCloseTo(expected / positions, within(NLL_TOLERANCE));
  }

  private static double negativeLogLikelihood(float[] logits, int token) {
    double max = logits[argMax(logits)];
    double sum = 0;
    for (float logit : logits) {
      sum += Math.exp(logit - max);
    }
    return max + Math.log(sum) - logits[token];
  }

  /** Their margins are above 8 where the logits differ by less than 1. */
  @Test
  void greedyContinuationsAreEqualToTheRecordedOnes() {
    List<Integer> prompts = List.of(GREETING, CAPITAL, JSON, MEMORY);
    int steps = 23;
    try (ModelHarness nano = nano(64, 4)) {
      List<int[]> answers =
          nano.greedy(prompts.stream().map(LilyNanoTest::ids).toList(), 64, steps);
      for (int i = 0; i < answers.size(); i++) {
        JsonNode prompt = PROMPTS.path(prompts.get(i));
        int length = prompt.path("end_at").asInt() + 1;
        assertThat(length).isLessThanOrEqualTo(steps);
        assertThat(Arrays.copyOf(answers.get(i), length))
            .as(prompt.path("name").asString())
            .containsExactly(Arrays.copyOf(Goldens.ints(prompt.path("greedy_ids")), length));
      }
    }
  }

  @Test
  void logitsDoNotDependOnThePrefillChunk() {
    int[] prompt = ids(JSON); // one token longer than a page
    try (ModelHarness nano = nano(64, 1)) {
      float[][] whole = logits(nano, prompt, 64);
      for (int chunk : new int[] {13, 32}) {
        assertThat(logits(nano, prompt, chunk)).as("chunk of %d", chunk).isDeepEqualTo(whole);
      }
    }
  }

  private static float[][] logits(ModelHarness nano, int[] prompt, int chunk) {
    try (SequenceState state = nano.newSequence()) {
      return nano.logits(state, prompt, chunk);
    }
  }

  /** A sequence that is prefilled and then decodes greedily; the logits of every pass are kept. */
  private static final class Answer {
    private final SequenceState state;
    private final int[] prompt;
    private final List<float[]> logits = new ArrayList<>();

    Answer(ModelHarness nano, int[] prompt) {
      this.prompt = prompt;
      state = nano.newSequence();
      nano.model.states().device().beginSampling(state.samplingSlot(), ModelHarness.GREEDY, prompt);
    }

    void addTo(ModelHarness nano) {
      int[] next = logits.isEmpty() ? prompt : new int[] {RowPlan.PREVIOUS_TOKEN};
      nano.addRows(state, next, 0, next.length, 1, state.samplingSlot());
    }
  }

  private static void step(ModelHarness nano, List<Answer> answers) {
    nano.plan().clear();
    answers.forEach(answer -> answer.addTo(nano));
    float[] logits = nano.forward();
    int vocabulary = nano.config.vocabSize();
    for (int i = 0; i < answers.size(); i++) {
      answers.get(i).logits.add(Arrays.copyOfRange(logits, i * vocabulary, (i + 1) * vocabulary));
    }
  }

  @Test
  void threeSequencesAnswerTogetherAsTheyDoAlone() {
    try (ModelHarness nano = nano(64, 3)) {
      List<int[]> prompts = List.of(ids(GREETING), ids(CAPITAL), Arrays.copyOf(ids(MEMORY), 31));
      List<Answer> together = prompts.stream().map(ids -> new Answer(nano, ids)).toList();
      step(nano, together.subList(0, 2));
      step(nano, together); // two decode rows before a prefill
      step(nano, together);
      step(nano, together); // the third one's first token on a new page
      together.forEach(answer -> answer.state.close());
      for (Answer expected : together) {
        Answer alone = new Answer(nano, expected.prompt);
        for (float[] logits : expected.logits) {
          step(nano, List.of(alone));
          assertThat(alone.logits.getLast()).containsExactly(logits);
        }
        alone.state.close();
      }
      assertThat(nano.model.states().usedPages()).isZero();
    }
  }

  @Test
  void aRestoredSnapshotContinuesAsIfItHadNeverBeenLeft() {
    try (ModelHarness nano = nano(64, 3)) { // a snapshot takes pages of its own
      Answer straight = new Answer(nano, ids(JSON));
      for (int step = 0; step < 5; step++) {
        step(nano, List.of(straight));
      }
      Answer answer = new Answer(nano, ids(JSON));
      step(nano, List.of(answer));
      step(nano, List.of(answer)); // the newest page holds two tokens
      int position = answer.state.position();
      try (SequenceState.Snapshot snapshot = Objects.requireNonNull(answer.state.snapshot())) {
        nano.logits(answer.state, ids(GREETING), 64);
        answer.state.restore(snapshot);
      }
      assertThat(answer.state.position()).isEqualTo(position);
      for (int step = 2; step < 5; step++) {
        step(nano, List.of(answer));
        assertThat(answer.logits.get(step)).containsExactly(straight.logits.get(step));
      }
      straight.state.close();
      answer.state.close();
      assertThat(nano.model.states().usedPages()).isZero();
      assertThat(nano.model.states().usedSlots()).isZero();
    }
  }
}
