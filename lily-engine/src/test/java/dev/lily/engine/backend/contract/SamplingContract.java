package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.sampling.SampledToken;
import dev.lily.engine.sampling.Sampler;
import dev.lily.engine.sampling.SamplerState;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The verb {@code sample}: equal to {@link Sampler}, whatever else is in the pass. */
abstract class SamplingContract {
  private static final int VOCABULARY = 100;
  private static final SamplingParameters GREEDY =
      SamplingParameters.of(SamplingOptions.GREEDY, 0, -1);

  private final BackendContract contract;

  SamplingContract(BackendContract contract) {
    this.contract = contract;
  }

  private static SamplingParameters drawing(long seed, int topLogprobs) {
    return SamplingParameters.of(
        SamplingOptions.builder()
            .temperature(1.3)
            .topK(40)
            .topP(0.95)
            .presencePenalty(0.5)
            .repetitionPenalty(1.2)
            .build(),
        seed,
        topLogprobs);
  }

  /** Adds a sequence whose rows all have logits. */
  private static void add(Rig rig, int firstToken, int rows, int samplingSlot) {
    int[] tokens = new int[rows];
    Arrays.setAll(tokens, i -> firstToken + i);
    rig.plan().add(tokens, 0, rows, 0, new PageTable(), 0, rows, samplingSlot);
  }

  private static PendingPass sample(Rig rig, Tensor logits, float[] rows) {
    return rig.run(
        pass -> {
          rig.fill(pass, rows, logits);
          pass.sample(logits);
        });
  }

  @Test
  void takesTheLargestLogitAndTheLowestIdOnTies() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      float[] rows = new Values(1).uniform(2 * VOCABULARY, -5, 5);
      rows[71] = 7;
      rows[23] = 7;
      rows[VOCABULARY + 99] = 6;
      rig.state().beginSampling(3, GREEDY, new int[0]);
      rig.state().beginSampling(0, GREEDY, new int[0]);
      rig.plan().clear();
      add(rig, 0, 1, 3);
      add(rig, 1, 1, 0);
      PendingPass result = sample(rig, logits, rows);
      assertThat(result.token(0)).isEqualTo(23);
      assertThat(result.token(1)).isEqualTo(99);
      assertThat(result.logprob(0)).isNaN();
      assertThat(result.numTopLogprobs(0)).isZero();
    }
  }

  @Test
  void drawsAsTheSamplerDoesStepAfterStep() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      Values random = new Values(2);
      int[] prompt = {3, 14, 15};
      SamplerState state = new SamplerState(VOCABULARY);
      state.begin(drawing(42, 5), prompt);
      rig.state().beginSampling(6, drawing(42, 5), prompt);
      Sampler sampler = new Sampler(VOCABULARY);
      SampledToken expected = new SampledToken();
      for (int step = 0; step < 20; step++) {
        float[] rows = random.uniform(VOCABULARY, -2, 2);
        rig.plan().clear();
        add(rig, 0, 1, 6);
        PendingPass result = sample(rig, logits, rows);
        assertThat(result.token(0)).isEqualTo(sampler.sample(rows, 0, state, expected));
        assertThat(result.logprob(0)).isEqualTo(expected.logprob());
        assertThat(result.numTopLogprobs(0)).isEqualTo(5);
        for (int rank = 0; rank < 5; rank++) {
          assertThat(result.topToken(0, rank)).isEqualTo(expected.topToken(rank));
          assertThat(result.topLogprob(0, rank)).isEqualTo(expected.topLogprob(rank));
        }
      }
    }
  }

  static Stream<SamplingOptions> options() {
    return Stream.of(
        SamplingOptions.builder().temperature(1.0).build(),
        SamplingOptions.builder().temperature(0.6).topK(7).build(),
        SamplingOptions.builder().temperature(1.5).topP(0.7).build(),
        SamplingOptions.builder().temperature(1.2).minP(0.2).build(),
        SamplingOptions.builder().temperature(1.1).topK(30).topP(0.9).minP(0.05).build(),
        SamplingOptions.builder()
            .temperature(0.8)
            .presencePenalty(1.5)
            .frequencyPenalty(0.5)
            .repetitionPenalty(1.3)
            .build(),
        SamplingOptions.builder()
            .temperature(0.0)
            .frequencyPenalty(0.7)
            .logitBias(Map.of(3, 2.5, 60, -100.0, 90, 1.25))
            .build(),
        SamplingOptions.builder()
            .temperature(0.9)
            .topK(20)
            .topP(0.95)
            .minP(0.01)
            .presencePenalty(-0.5)
            .frequencyPenalty(0.25)
            .repetitionPenalty(0.8)
            .logitBias(Map.of(0, 4.0, 42, -2.0))
            .build());
  }

  /** Eight sequences of eight steps, every second one with a mask. */
  @ParameterizedTest
  @MethodSource("options")
  void choosesTheSamplersTokensWithEveryOption(SamplingOptions options) {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      Values random = new Values(8);
      float[] rows = random.uniform(64 * VOCABULARY, -4, 4);
      int[] prompt = {3, 14, 15, 92, 65};
      long[] allowed = {0x5555_3333_0F0F_00FFL, -1L >>> 31};
      rig.plan().clear();
      List<SamplerState> states = new ArrayList<>();
      for (int s = 0; s < 8; s++) {
        SamplingParameters parameters = SamplingParameters.of(options, 1000 + s, -1);
        SamplerState state = new SamplerState(VOCABULARY);
        state.begin(parameters, prompt);
        rig.state().beginSampling(s, parameters, prompt);
        if (s % 2 == 1) {
          state.mask(allowed);
          rig.state().maskTokens(s, allowed);
        }
        states.add(state);
        add(rig, 8 * s, 8, s);
      }
      PendingPass result = sample(rig, logits, rows);
      Sampler sampler = new Sampler(VOCABULARY);
      SampledToken expected = new SampledToken();
      for (int row = 0; row < 64; row++) {
        assertThat(result.token(row))
            .as("step %d of sequence %d", row % 8, row / 8)
            .isEqualTo(sampler.sample(rows, row * VOCABULARY, states.get(row / 8), expected));
      }
    }
  }

  @Test
  void drawsTheSameForASequenceAloneAndAmongOthers() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      float[] rows = new Values(3).uniform(16 * VOCABULARY, -2, 2);
      List<Integer> together = new ArrayList<>();
      rig.plan().clear();
      for (int s = 0; s < 8; s++) {
        rig.state().beginSampling(s, drawing(100 + s, -1), new int[0]);
        add(rig, 2 * s, 2, s);
      }
      PendingPass batch = sample(rig, logits, rows);
      for (int i = 0; i < 16; i++) {
        together.add(batch.token(i));
      }
      List<Integer> alone = new ArrayList<>();
      for (int s = 0; s < 8; s++) {
        rig.state().beginSampling(7 - s, drawing(100 + s, -1), new int[0]);
        rig.plan().clear();
        add(rig, 2 * s, 2, 7 - s);
        PendingPass one = sample(rig, logits, rows);
        alone.add(one.token(0));
        alone.add(one.token(1));
      }
      assertThat(alone).isEqualTo(together);
    }
  }

  @Test
  void choosesOnlyAllowedTokens() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      float[] rows = new Values(4).uniform(VOCABULARY, -2, 2);
      rows[50] = 9;
      rig.state().beginSampling(1, GREEDY, new int[0]);
      long[] allowed = {0, 1L << 70 - 64};
      rig.state().maskTokens(1, allowed);
      allowed[0] = -1;
      rig.plan().clear();
      add(rig, 0, 1, 1);
      assertThat(sample(rig, logits, rows).token(0)).isEqualTo(70);
      rig.state().maskTokens(1, null);
      assertThat(sample(rig, logits, rows).token(0)).isEqualTo(50);
    }
  }

  @Test
  void leavesRowsWithoutASlotAlone() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      float[] rows = new Values(5).uniform(3 * VOCABULARY, -2, 2);
      rows[2 * VOCABULARY + 8] = 9;
      rig.state().beginSampling(2, GREEDY, new int[0]);
      rig.plan().clear();
      add(rig, 0, 2, RowPlan.NO_SAMPLING);
      add(rig, 2, 1, 2);
      PendingPass result = sample(rig, logits, rows);
      assertThat(result.token(0)).isEqualTo(-1);
      assertThat(result.token(1)).isEqualTo(-1);
      assertThat(result.token(2)).isEqualTo(8);
      assertThat(rig.read(logits, 3, pass -> {})).containsExactly(rows);
    }
  }

  @Test
  void givesNoTokenToASequenceWhoseLogitsAreNaNAndOneToTheOthers() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      float[] rows = new Values(6).uniform(2 * VOCABULARY, -2, 2);
      Arrays.fill(rows, 0, VOCABULARY, Float.NaN);
      rows[VOCABULARY + 4] = 9;
      rig.state().beginSampling(0, GREEDY, new int[0]);
      rig.state().beginSampling(1, GREEDY, new int[0]);
      rig.plan().clear();
      add(rig, 0, 1, 0);
      add(rig, 1, 1, 1);
      PendingPass result = sample(rig, logits, rows);
      assertThat(result.token(0)).isEqualTo(-1);
      assertThat(result.token(1)).isEqualTo(4);
    }
  }

  @Test
  void embedsTheTokenThatWasSampledLast() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      Tensor x = rig.tensor(4);
      float[] embedding = new Values(7).uniform(VOCABULARY * 4, -1, 1);
      Matrix matrix = rig.load(TestMatrix.rows(embedding, 4));
      float[] rows = new float[VOCABULARY];
      rows[31] = 1;
      rig.state().beginSampling(5, GREEDY, new int[0]);
      rig.plan().clear();
      add(rig, 0, 1, 5);
      sample(rig, logits, rows);
      rig.plan().clear();
      rig.plan().add(new int[] {2}, 0, 1, 0, new PageTable(), 0, 0, RowPlan.NO_SAMPLING);
      rig.plan().add(new int[] {RowPlan.PREVIOUS_TOKEN}, 0, 1, 1, new PageTable(), 1, 0, 5);
      float[] read = rig.read(x, 2, pass -> pass.embed(matrix, x));
      assertThat(Arrays.copyOfRange(read, 4, 8))
          .containsExactly(Arrays.copyOfRange(embedding, 31 * 4, 32 * 4));
    }
  }

  /** Five tokens are chosen at a time, of which the first {@code kept} stay. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 5})
  void takesTokensBackAsIfTheyHadNotBeenChosen(int kept) {
    SamplingParameters parameters =
        SamplingParameters.of(
            SamplingOptions.builder()
                .temperature(1.1)
                .presencePenalty(0.9)
                .frequencyPenalty(0.4)
                .repetitionPenalty(1.4)
                .build(),
            77,
            2);
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      Values random = new Values(9);
      int[] prompt = {1, 50, 99};
      SamplerState state = new SamplerState(VOCABULARY);
      state.begin(parameters, prompt);
      rig.state().beginSampling(4, parameters, prompt);
      rig.state().beginSampling(5, drawing(3, -1), prompt);
      Sampler sampler = new Sampler(VOCABULARY);
      SampledToken expected = new SampledToken();
      for (int round = 0; round < 8; round++) {
        // Few tokens are likely, so that many are chosen again, those of the prompt among them.
        float[] rows = random.uniform(6 * VOCABULARY, -9, -8);
        for (int row = 0; row < 5; row++) {
          for (int token : new int[] {1, 50, 98, 99, 7 + row}) {
            rows[row * VOCABULARY + token] = random.uniform(1, 0, 2)[0];
          }
        }
        rig.plan().clear();
        add(rig, 0, 5, 4);
        add(rig, 5, 1, 5);
        PendingPass result = sample(rig, logits, rows);
        int[] chosen = new int[7];
        for (int i = 0; i < 5; i++) {
          chosen[i] = result.token(i);
        }
        for (int i = 0; i < kept; i++) {
          assertThat(chosen[i])
              .as("token %d of round %d", i, round)
              .isEqualTo(sampler.sample(rows, i * VOCABULARY, state, expected));
          assertThat(result.logprob(i)).isEqualTo(expected.logprob());
        }
        rig.state().rewindSampling(4, chosen, 5, kept);
      }
      Tensor x = rig.tensor(4);
      float[] embedding = new Values(7).uniform(VOCABULARY * 4, -1, 1);
      Matrix matrix = rig.load(TestMatrix.rows(embedding, 4));
      rig.plan().clear();
      rig.plan().add(new int[] {RowPlan.PREVIOUS_TOKEN}, 0, 1, 0, new PageTable(), 0, 0, 4);
      assertThat(rig.read(x, 1, pass -> pass.embed(matrix, x)))
          .as("the token that comes before the next one")
          .containsExactly(
              Arrays.copyOfRange(embedding, state.lastToken() * 4, state.lastToken() * 4 + 4));
    }
  }

  @Test
  void keepsAMaskWhenTokensAreTakenBack() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      float[] rows = new float[2 * VOCABULARY];
      rows[3] = 9;
      rows[VOCABULARY + 3] = 9;
      rig.state().beginSampling(0, GREEDY, new int[0]);
      rig.state().maskTokens(0, new long[] {1L << 40, 0});
      rig.plan().clear();
      add(rig, 0, 2, 0);
      sample(rig, logits, rows);
      rig.state().rewindSampling(0, new int[] {40, 40}, 2, 1);
      assertThat(sample(rig, logits, rows).token(1)).isEqualTo(40);
    }
  }

  @Test
  void refusesToTakeBackWhatWasNotChosen() {
    try (Rig rig = new Rig(contract.open())) {
      rig.state().beginSampling(0, GREEDY, new int[0]);
      assertThatIllegalArgumentException()
          .isThrownBy(() -> rig.state().rewindSampling(0, new int[] {1, 2}, 2, 1))
          .withMessage("Keeping 1 of the last 2 tokens of 0; at least 1 must stay");
    }
  }

  @Test
  void keepsAResultUntilThePassAfterTheNext() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor logits = rig.tensor(VOCABULARY);
      rig.state().beginSampling(0, GREEDY, new int[0]);
      float[] first = new float[VOCABULARY];
      first[11] = 1;
      float[] second = new float[VOCABULARY];
      second[22] = 1;
      rig.plan().clear();
      add(rig, 0, 1, 0);
      PendingPass before = sample(rig, logits, first);
      PendingPass after = sample(rig, logits, second);
      assertThat(before.token(0)).isEqualTo(11);
      assertThat(after.token(0)).isEqualTo(22);
      assertThat(after.deviceNanos()).isPositive();
    }
  }
}
