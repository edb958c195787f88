package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.Backend;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.BackendSelector;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.PendingPass;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.backend.contract.TinyModel.Variant;
import dev.lily.engine.backend.contract.TinyTrace;
import dev.lily.engine.backend.contract.TinyTrace.Step;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalGpu;
import dev.lily.metal.device.MetalGpuExtension;
import java.util.Arrays;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Rows whose token never left the device: the path that the contract's literal tokens spare. It
 * rounds elsewhere than prefill does, and two steps of the model may make much of a rounding: the
 * choice of experts, where two router logits are nearly equal, and the norm after the delta rule,
 * where an output is nearly zero. So each step is held against double precision given its own
 * inputs; logits are compared where neither step magnifies; and where one does, the cause must
 * show.
 */
@ExtendWith(MetalGpuExtension.class)
class DecodePathTest {
  private static final int V = TinyModel.VOCABULARY;
  private static final SamplingParameters GREEDY =
      SamplingParameters.of(SamplingOptions.GREEDY, 0, -1);
  private static final int[] PROMPT = {5, 80, 31, 2, 47, 66, 9, 13, 21, 90, 4};
  private static final int[] OTHER = {60, 7, 7, 18, 99};

  /** Unit roundoff of bf16. */
  private static final double ROUNDING = 0x1p-8;

  /**
   * Most roundings by which a step may be off; measured are up to 3.2 in a product, 1.9 in
   * attention and 0.97, the result's own, in the delta rule.
   */
  private static final Map<String, Double> MOST_ROUNDINGS =
      Map.of(
          "residual", 0.0,
          "projections", 4.0,
          "delta", 1.0,
          "attention", 2.5,
          "mixer", 4.0,
          "router", 4.0,
          "experts", 4.0,
          "logits", 4.0);

  /** One sequence that decodes greedily. */
  private static final class Sequence {
    private final PageTable pages = new PageTable();
    private final TinyModel model;
    private final int number;
    private int position;

    Sequence(TinyModel model, int number) {
      this.model = model;
      this.number = number;
      for (int i = 0; i <= TinyModel.LIMITS.maxPositions() / TinyModel.PAGE_TOKENS; i++) {
        pages.add(4 * i + number);
      }
      model.state().clearSlot(number);
      model.state().beginSampling(number, GREEDY, new int[0]);
    }

    void prefill(RowPlan plan, int... tokens) {
      plan.add(tokens, 0, tokens.length, position, pages, number, 1, number);
      position += tokens.length;
    }

    void decode(RowPlan plan) {
      prefill(plan, RowPlan.PREVIOUS_TOKEN);
    }

    /** Logits of the last of some more tokens. */
    float[] next(@Nullable TinyTrace trace, int... tokens) {
      RowPlan plan = new RowPlan(TinyModel.LIMITS);
      prefill(plan, tokens);
      return forward(model, plan, trace);
    }

    /** Takes over what the other one holds since its last token. */
    void follow(Sequence other) {
      int page = (position - 1) / TinyModel.PAGE_TOKENS;
      model.state().copySlot(other.number, number);
      model.state().copyPage(other.pages.page(page), pages.page(page));
    }
  }

  private static TinyModel open() {
    return new TinyModel(metal());
  }

  private static Backend metal() {
    return new MetalBackendProvider().open(BackendOptions.DEFAULT);
  }

  private static float[] forward(TinyModel model, RowPlan plan) {
    return forward(model, plan, null);
  }

  private static float[] forward(TinyModel model, RowPlan plan, @Nullable TinyTrace trace) {
    float[] logits = new float[plan.numLogitRows() * V];
    PendingPass pass = model.forward(plan, logits, trace);
    for (int i = 0; i < plan.numLogitRows(); i++) {
      float[] row = Arrays.copyOfRange(logits, i * V, (i + 1) * V);
      assertThat(row[pass.token(i)]).isGreaterThanOrEqualTo(row[7]);
    }
    plan.clear();
    return logits;
  }

  @Test
  void givesARowTheSameBitsAloneAmongOthersAndBesideAPrefill(MetalGpu metal) {
    metal.useKernels();
    try (TinyModel model = open()) {
      RowPlan plan = new RowPlan(TinyModel.LIMITS);
      Sequence alone = new Sequence(model, 0);
      alone.prefill(plan, PROMPT);
      float[] first = forward(model, plan);
      alone.decode(plan);
      float[] second = forward(model, plan);
      alone.decode(plan);
      float[] third = forward(model, plan);

      Sequence among = new Sequence(model, 1);
      Sequence other = new Sequence(model, 2);
      Sequence late = new Sequence(model, 3);
      other.prefill(plan, OTHER);
      among.prefill(plan, PROMPT);
      assertThat(Arrays.copyOfRange(forward(model, plan), V, 2 * V)).containsExactly(first);
      among.decode(plan);
      other.decode(plan);
      assertThat(Arrays.copyOf(forward(model, plan), V)).containsExactly(second);
      // Decode rows lie behind prefill rows on the device, and in front of them in the plan.
      among.decode(plan);
      late.prefill(plan, OTHER);
      other.decode(plan);
      assertThat(Arrays.copyOf(forward(model, plan), V)).containsExactly(third);
    }
  }

  @Test
  void givesTheSameBitsOnTheFastBuildOfTheKernels(MetalGpu gpu) {
    MetalDouble metal = gpu.requireDouble();
    metal.useKernels();
    float[][] checked = prefillAndDecode();
    metal.useFastKernels();
    assertThat(prefillAndDecode()).isDeepEqualTo(checked);
  }

  private static float[][] prefillAndDecode() {
    try (TinyModel model = open()) {
      Sequence sequence = new Sequence(model, 0);
      return new float[][] {
        sequence.next(null, PROMPT), sequence.next(null, RowPlan.PREVIOUS_TOKEN)
      };
    }
  }

  @Test
  void computesEachStepRightAtEveryPositionOnBothPaths(MetalGpu metal) {
    metal.useFastKernels();
    int steps = 100; // over seven pages and two splits of attention
    try (TinyModel model = open()) {
      TinyTrace decoded = new TinyTrace();
      TinyTrace prefilled = new TinyTrace();
      Sequence decoding = new Sequence(model, 0);
      Sequence prefilling = new Sequence(model, 1);
      int token = argMax(decoding.next(decoded, PROMPT));
      prefilling.next(prefilled, PROMPT);
      for (int step = 0; step < steps; step++) {
        prefilling.next(prefilled, token);
        token = argMax(decoding.next(decoded, RowPlan.PREVIOUS_TOKEN));
      }
      assertThat(decoded.rows(0, Step.MIXER_INPUT))
          .as("embedded tokens")
          .usingRecursiveComparison()
          .isEqualTo(prefilled.rows(0, Step.MIXER_INPUT));
      for (TinyTrace trace : new TinyTrace[] {decoded, prefilled}) {
        String path = trace == decoded ? "decode" : "prefill";
        Map<String, Double> errors = trace.errors(model, ROUNDING);
        System.out.println("Roundings per step, " + path + ": " + errors);
        assertThat(errors.keySet()).isEqualTo(MOST_ROUNDINGS.keySet());
        errors.forEach(
            (step, error) ->
                assertThat(error)
                    .as("%s, %s", path, step)
                    .isBetween(0.0, MOST_ROUNDINGS.get(step)));
      }
    }
  }

  @Test
  void staysCloseToPrefillAtEveryPositionWhereNothingMagnifies(MetalGpu metal) {
    metal.useFastKernels();
    long seed = 1;
    int steps = 120; // to the third split of attention
    float[] toPrefill = new float[steps];
    float[] toExact = new float[steps];
    Backend processor =
        BackendSelector.select("cpu").provider().open(new BackendOptions(1, "scalar"));
    try (TinyModel model = new TinyModel(metal(), Variant.steady(seed));
        TinyModel exact = new TinyModel(processor, Variant.steady(seed), KeyValueType.FP32)) {
      Sequence decoding = new Sequence(model, 0);
      Sequence prefilling = new Sequence(model, 1);
      Sequence reference = new Sequence(exact, 0);
      int token = argMax(decoding.next(null, PROMPT));
      prefilling.next(null, PROMPT);
      reference.next(null, PROMPT);
      for (int step = 0; step < steps; step++) {
        float[] prefilled = prefilling.next(null, token);
        float[] expected = reference.next(null, token);
        float[] decoded = decoding.next(null, RowPlan.PREVIOUS_TOKEN);
        toPrefill[step] = distance(decoded, prefilled);
        toExact[step] = distance(decoded, expected);
        token = argMax(decoded);
      }
    }
    System.out.printf(
        "Decode, shares of the range: to prefill median %.4f, most %.4f; to fp32 %.4f, %.4f%n",
        median(toPrefill), most(toPrefill), median(toExact), most(toExact));
    assertThat(most(toPrefill)).isLessThan(0.05f);
    assertThat(most(toExact)).isLessThan(0.05f);
    // It does not grow with length.
    int third = steps / 3;
    assertThat(median(Arrays.copyOfRange(toPrefill, 2 * third, steps)))
        .isLessThan(1.25f * median(Arrays.copyOf(toPrefill, third)));
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void differsFromPrefillByMoreOnlyWhereARouterTips(long seed, MetalGpu metal) {
    metal.useFastKernels();
    int steps = 50;
    try (TinyModel model = new TinyModel(metal(), Variant.of(seed))) {
      TinyTrace decoded = new TinyTrace();
      TinyTrace prefilled = new TinyTrace();
      Sequence decoding = new Sequence(model, 0);
      Sequence prefilling = new Sequence(model, 1);
      float[] distances = new float[steps];
      int token = argMax(decoding.next(decoded, PROMPT));
      prefilling.next(prefilled, PROMPT);
      for (int step = 0; step < steps; step++) {
        float[] expected = prefilling.next(prefilled, token);
        float[] actual = decoding.next(decoded, RowPlan.PREVIOUS_TOKEN);
        distances[step] = distance(actual, expected);
        token = argMax(actual);
        prefilling.follow(decoding); // so that each step starts from the same bits
      }
      checkDistances(model, decoded, prefilled, distances);
    }
  }

  private static void checkDistances(
      TinyModel model, TinyTrace decoded, TinyTrace prefilled, float[] distances) {
    double[] magnified = decoded.magnified(model);
    int tipped = 0;
    for (int step = 0; step < distances.length; step++) {
      int row = PROMPT.length + step;
      int layer = decoded.firstOtherChoice(prefilled, model, row);
      if (layer < 0) {
        // One rounding, magnified by the norm after the delta rule, in the logits.
        assertThat(distances[step])
            .as("row %d, magnified %.1f", row, magnified[row])
            .isLessThan((float) (0.04 + ROUNDING * magnified[row]));
      } else {
        tipped++;
        System.out.printf(
            "Row %d: layer %d chose other experts by a margin of %.4f; logits differ by %.4f%n",
            row, layer, decoded.margin(model, layer, row), distances[step]);
        assertThat(decoded.margin(model, layer, row))
            .as("margin of the router that tipped, row %d", row)
            .isLessThan(0.02); // measured: up to 0.008, and logits that differ by up to 0.04
      }
    }
    assertThat(tipped).as("routers that tipped").isLessThan(distances.length / 10);
  }

  private static float median(float[] values) {
    float[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private static float most(float[] values) {
    float[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length - 1];
  }

  /** Largest difference as a share of the largest value. */
  private static float distance(float[] actual, float[] expected) {
    float difference = 0;
    float range = 0;
    for (int t = 0; t < expected.length; t++) {
      difference = Math.max(difference, Math.abs(actual[t] - expected[t]));
      range = Math.max(range, Math.abs(expected[t]));
    }
    return difference / range;
  }

  private static int argMax(float[] logits) {
    int best = 0;
    for (int t = 1; t < V; t++) {
      best = logits[t] > logits[best] ? t : best;
    }
    return best;
  }
}
