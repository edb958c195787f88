package dev.lily.engine.model.qwen35moe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.qwen35moe.PassObserver.Activation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.assertj.core.api.SoftAssertions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;

/** lily-nano against the reference values recorded with transformers in float32. */
class LilyNanoGoldenTest {
  /** Stated by the goldens' README for float32 engines. */
  private static final float LOGIT_TOLERANCE = 2e-3f;

  /** A greedy choice binds where its margin exceeds ten times the logit tolerance. */
  private static final float BINDING_MARGIN = 10 * LOGIT_TOLERANCE;

  private static final int CHUNK = 256;

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void logitsOfEveryRecordedPositionAgree(String kernels) {
    Map<String, float[]> expected = new TreeMap<>(Goldens.tensors("lily-nano/logits.safetensors"));
    JsonNode prompts = Goldens.json("lily-nano/prompts.json").path("prompts");
    double largest = 0;
    try (ModelHarness nano = ModelHarness.nano(kernels, KeyValueType.FP32, 2, CHUNK, 1, CHUNK)) {
      for (int p = 0; p < prompts.size(); p++) {
        try (SequenceState state = nano.newSequence()) {
          int[] ids = Goldens.ints(prompts.get(p).path("prompt_ids"));
          float[][] logits = nano.logits(state, ids, CHUNK);
          for (String position : prompts.get(p).path("positions").propertyNames()) {
            float[] reference = expected.remove("prompt" + p + ".pos" + position);
            largest =
                Math.max(largest, largestDifference(logits[Integer.parseInt(position)], reference));
          }
        }
      }
    }
    System.out.println("lily-nano logits, " + kernels + ": largest difference " + largest);
    assertThat(expected.keySet()).as("recorded positions that were not compared").isEmpty();
    assertThat(largest).isLessThan(LOGIT_TOLERANCE);
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void hiddenStatesBranchesAndRoutingOfEveryLayerAgree(String kernels) {
    Map<String, float[]> expected = Goldens.tensors("lily-nano/activations.safetensors");
    JsonNode recorded = Goldens.json("lily-nano/activations.json");
    int[] ids = Goldens.ints(recorded.path("prompt_ids"));
    Map<String, float[]> actual = new TreeMap<>();
    int layers;
    try (ModelHarness nano = ModelHarness.nano(kernels, KeyValueType.FP32, 2, CHUNK, 1, CHUNK);
        SequenceState state = nano.newSequence()) {
      layers = nano.config.numHiddenLayers();
      nano.logits(
          state,
          ids,
          CHUNK,
          (pass, what, layer, tensor) -> {
            if (what != Activation.LOGITS) {
              float[] copy = new float[ids.length * tensor.columns()];
              pass.copyOut(tensor, 0, ids.length, copy);
              actual.put(what + "." + layer, copy);
            }
          });
    }
    SoftAssertions softly = new SoftAssertions();
    compare(softly, actual.get("LAYER_INPUT.0"), expected, "embed");
    for (int i = 0; i < layers; i++) {
      String layer = "layer.%02d".formatted(i);
      compare(softly, actual.get("MIXER." + i), expected, layer + ".mixer");
      compare(softly, actual.get("EXPERTS." + i), expected, layer + ".mlp");
      compare(softly, actual.get("ROUTER_LOGITS." + i), expected, layer + ".router.logits");
      if (i + 1 < layers) {
        compare(softly, actual.get("LAYER_INPUT." + (i + 1)), expected, layer);
      }
      routesAgree(
          softly,
          actual.get("ROUTER_LOGITS." + i),
          recorded.path("router").path(layer + ".router"),
          ids.length);
    }
    compare(softly, actual.get("FINAL_NORM." + layers), expected, "final_norm");
    softly.assertAll();
  }

  private static void compare(
      SoftAssertions softly, float[] actual, Map<String, float[]> expected, String name) {
    float[] reference = expected.get(name);
    softly.assertThat(actual).as(name).hasSameSizeAs(reference);
    softly
        .assertThat(largestDifference(actual, reference))
        .as(name)
        .isLessThan(1e-3 * Math.max(1, largestMagnitude(reference)));
  }

  private static void routesAgree(
      SoftAssertions softly, float[] logits, JsonNode recorded, int tokens) {
    int experts = logits.length / tokens;
    for (int t = 0; t < tokens; t++) {
      float[] row = Arrays.copyOfRange(logits, t * experts, (t + 1) * experts);
      JsonNode chosen = recorded.path("experts").path(t);
      double sum = 0;
      for (JsonNode expert : chosen) {
        sum += Math.exp(row[expert.asInt()]);
      }
      List<Integer> order = new ArrayList<>();
      for (int e = 0; e < experts; e++) {
        order.add(e);
      }
      order.sort((a, b) -> Float.compare(row[b], row[a]));
      for (int k = 0; k < chosen.size(); k++) {
        softly
            .assertThat(order.get(k))
            .as("token %d rank %d", t, k)
            .isEqualTo(chosen.get(k).asInt());
        softly
            .assertThat(Math.exp(row[order.get(k)]) / sum)
            .isCloseTo(recorded.path("weights").path(t).path(k).asDouble(), within(1e-4));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void greedyContinuationsAreEqualWhereverTheMarginBinds(String kernels) {
    JsonNode prompts = Goldens.json("lily-nano/prompts.json").path("prompts");
    List<int[]> ids = new ArrayList<>();
    prompts.forEach(prompt -> ids.add(Goldens.ints(prompt.path("prompt_ids"))));
    List<int[]> answers;
    try (ModelHarness nano =
        ModelHarness.nano(kernels, KeyValueType.FP32, 2, CHUNK, ids.size(), ids.size())) {
      answers = nano.greedy(ids, CHUNK, 64);
    }
    for (int p = 0; p < ids.size(); p++) {
      JsonNode prompt = prompts.get(p);
      agreesUntilAnUncertainStep(
          prompt.path("name").asString(),
          answers.get(p),
          Goldens.ints(prompt.path("greedy_ids")),
          prompt.path("greedy_margins"),
          prompt.path("end_at").asInt());
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void theLongPromptIsContinuedAsRecorded(String kernels) {
    JsonNode recorded = Goldens.json("lily-nano/long.json");
    int[] expected = Goldens.ints(recorded.path("greedy_ids"));
    int[] answer;
    try (ModelHarness nano = ModelHarness.nano(kernels, KeyValueType.FP32, 2, CHUNK, 1, 1)) {
      answer =
          nano.greedy(List.of(Goldens.ints(recorded.path("prompt_ids"))), CHUNK, expected.length)
              .getFirst();
    }
    agreesUntilAnUncertainStep(
        "long", answer, expected, recorded.path("greedy_margins"), recorded.path("end_at").asInt());
  }

  private static void agreesUntilAnUncertainStep(
      String name, int[] actual, int[] expected, JsonNode margins, int endAt) {
    for (int step = 0; step <= Math.min(endAt, expected.length - 1); step++) {
      if (actual[step] != expected[step]) {
        assertThat(margins.path(step).asDouble(Double.MAX_VALUE))
            .as("%s: step %d chose %d, not %d", name, step, actual[step], expected[step])
            .isLessThan(BINDING_MARGIN);
        return;
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void teacherForcedLikelihoodAgrees(String kernels) {
    JsonNode recorded = Goldens.json("lily-nano/nll.json");
    double sum = 0;
    int positions = 0;
    try (ModelHarness nano = ModelHarness.nano(kernels, KeyValueType.FP32, 2, CHUNK, 1, CHUNK)) {
      for (JsonNode text : recorded.path("texts")) {
        int[] ids = Goldens.ints(text.path("ids"));
        try (SequenceState state = nano.newSequence()) {
          float[][] logits = nano.logits(state, ids, CHUNK);
          for (int t = 0; t + 1 < ids.length; t++) {
            sum += negativeLogLikelihood(logits[t], ids[t + 1]);
            positions++;
          }
        }
      }
    }
    double mean = sum / positions;
    System.out.println("lily-nano NLL, " + kernels + ": " + mean + " over " + positions);
    assertThat(positions).isEqualTo(recorded.path("positions").asInt());
    assertThat(mean).isCloseTo(recorded.path("mean_nll").asDouble(), within(0.0005));
  }

  private static double negativeLogLikelihood(float[] logits, int token) {
    double max = Double.NEGATIVE_INFINITY;
    for (float logit : logits) {
      max = Math.max(max, logit);
    }
    double sum = 0;
    for (float logit : logits) {
      sum += Math.exp(logit - max);
    }
    return max + Math.log(sum) - logits[token];
  }

  private static double largestDifference(float[] actual, float[] expected) {
    double largest = 0;
    for (int i = 0; i < expected.length; i++) {
      double difference = Math.abs((double) actual[i] - expected[i]);
      if (!(difference <= largest)) {
        largest = difference;
      }
    }
    return largest;
  }

  private static double largestMagnitude(float[] values) {
    double largest = 0;
    for (float value : values) {
      largest = Math.max(largest, Math.abs(value));
    }
    return largest;
  }
}
