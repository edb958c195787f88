package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.ComputePass;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.DeviceState;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.sampling.ReferenceSampler;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Many draws of one distribution by the device's sampler, with fixed seeds. */
@ExtendWith(MetalDoubleExtension.class)
class SamplingStatisticsTest {
  private static final int VOCABULARY = 40;
  private static final int SLOTS = 8;
  private static final PassLimits LIMITS = new PassLimits(64, SLOTS, 64, 64);
  private static final StateLayout LAYOUT =
      new StateLayout(1, 1, 8, 8, 8, 1, 4, 24, 1, 8, 8, 2, SLOTS, VOCABULARY);
  private static final ModelShape SHAPE = new ModelShape(64, 1, 8, 8, 2, 1, 8, 8, VOCABULARY);
  private static final int[] PROMPT = {1, 5, 9};
  private static final int PASSES = 20;

  static Stream<Arguments> cases() {
    return Stream.of(
        Arguments.of("temperature", SamplingOptions.builder().temperature(1.4), null, 8),
        Arguments.of("top-k", SamplingOptions.builder().temperature(1.0).topK(9), null, 8),
        Arguments.of("top-p", SamplingOptions.builder().temperature(1.2).topP(0.8), null, 8),
        Arguments.of("min-p", SamplingOptions.builder().temperature(1.5).minP(0.15), null, 8),
        Arguments.of(
            "bias and mask",
            SamplingOptions.builder().temperature(1.0).logitBias(Map.of(2, 1.5, 7, -1.0)),
            new long[] {0x2_5555_5A5FL},
            8),
        // Only the first draw of a seed has no generated tokens to count.
        Arguments.of(
            "all at once",
            SamplingOptions.builder()
                .temperature(1.3)
                .topK(25)
                .topP(0.97)
                .minP(0.02)
                .repetitionPenalty(1.5)
                .presencePenalty(1.0)
                .logitBias(Map.of(0, 0.75)),
            new long[] {0xFF_FFFF_0FFFL},
            1));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("cases")
  void drawsWithTheProbabilitiesOfTheReference(
      String name,
      SamplingOptions.Builder options,
      long @Nullable [] allowed,
      int draws,
      MetalDouble metal) {
    metal.useFastKernels();
    float[] logits = new float[VOCABULARY];
    SplittableRandom random = new SplittableRandom(11);
    for (int t = 0; t < VOCABULARY; t++) {
      logits[t] = (float) random.nextDouble(-2, 2);
    }
    int[] counts = draw(logits, options.build(), allowed, draws);
    Map<Integer, Double> expected =
        ReferenceSampler.distribution(
            logits,
            SamplingParameters.of(options.build(), 0, -1),
            Arrays.stream(PROMPT).boxed().toList(),
            List.of(),
            allowed);
    int total = PASSES * SLOTS * draws;
    double statistic = 0;
    for (int t = 0; t < VOCABULARY; t++) {
      double mean = expected.getOrDefault(t, 0.0) * total;
      if (mean == 0) {
        assertThat(counts[t]).as("draws of token %d, which is impossible", t).isZero();
      } else {
        statistic += (counts[t] - mean) * (counts[t] - mean) / mean;
      }
    }
    int degrees = expected.size() - 1;
    assertThat(degrees).isGreaterThan(5);
    // Four standard deviations of chi-square; the seeds are fixed, so that it holds or not.
    assertThat(statistic)
        .as("chi-square of %d draws, %d degrees of freedom", total, degrees)
        .isBetween(0.2 * degrees, degrees + 4 * Math.sqrt(2.0 * degrees));
  }

  /** How often each token was drawn, by 8 new seeds in each pass. */
  private static int[] draw(
      float[] logits, SamplingOptions options, long @Nullable [] allowed, int draws) {
    int[] counts = new int[VOCABULARY];
    try (Arena arena = Arena.ofConfined();
        Backend backend = new MetalBackendProvider().open(BackendOptions.DEFAULT)) {
      Matrix row =
          backend.matrix(
              new MatrixSource.Dense(
                  "logits",
                  1,
                  1,
                  VOCABULARY,
                  DType.F32,
                  4L * VOCABULARY,
                  arena.allocateFrom(ValueLayout.JAVA_FLOAT, logits)));
      Tensor values = backend.tensor(LIMITS.maxRows(), VOCABULARY);
      RowPlan plan = new RowPlan(LIMITS);
      for (int s = 0; s < SLOTS; s++) {
        plan.add(new int[draws], 0, draws, 0, new PageTable(), 0, draws, s);
      }
      try (DeviceState state = backend.openState(LAYOUT, SHAPE, LIMITS)) {
        for (int pass = 0; pass < PASSES; pass++) {
          for (int s = 0; s < SLOTS; s++) {
            long seed = 1000L * pass + s;
            state.beginSampling(s, SamplingParameters.of(options, seed, -1), PROMPT);
            state.maskTokens(s, allowed);
          }
          ComputePass verbs = backend.begin(plan, state);
          verbs.embed(row, values);
          verbs.sample(values);
          PendingPass pending = verbs.submit();
          pending.await();
          for (int i = 0; i < plan.numLogitRows(); i++) {
            counts[pending.token(i)]++;
          }
        }
      }
    }
    return counts;
  }
}
