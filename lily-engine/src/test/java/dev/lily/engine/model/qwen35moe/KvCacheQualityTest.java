package dev.lily.engine.model.qwen35moe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.cpu.KernelPaths;
import dev.lily.engine.model.SequenceState;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import tools.jackson.databind.JsonNode;

/**
 * What lily-nano loses by keys and values that are not exact, against the values recorded with
 * transformers in float32. Bounds are a few times what was measured: far below what a broken kernel
 * would cost.
 */
class KvCacheQualityTest {
  private static final String KERNELS = KernelPaths.hasVector() ? "vector" : "scalar";
  private static final int CHUNK = 256;

  private static ModelHarness nano(KeyValueType type, int sequences, int logitRows) {
    return ModelHarness.nano(KERNELS, type, 2, CHUNK, sequences, logitRows);
  }

  @ParameterizedTest
  @CsvSource({"FP32, 0.0005, 1, 0.002", "BF16, 0.0005, 0.995, 0.5", "INT8, 0.001, 0.99, 2"})
  void losesLittleOverTheRecordedTexts(
      KeyValueType type, double nll, double agreement, double logit) {
    JsonNode recorded = Goldens.json("lily-nano/nll.json");
    double sum = 0;
    double largest = 0;
    int positions = 0;
    int agreeing = 0;
    try (ModelHarness exact = nano(KeyValueType.FP32, 1, CHUNK);
        ModelHarness nano = nano(type, 1, CHUNK)) {
      for (JsonNode text : recorded.path("texts")) {
        int[] ids = Goldens.ints(text.path("ids"));
        float[][] expected = logits(exact, ids);
        float[][] actual = logits(nano, ids);
        for (int t = 0; t + 1 < ids.length; t++) {
          sum += negativeLogLikelihood(actual[t], ids[t + 1]);
          agreeing += argMax(actual[t]) == argMax(expected[t]) ? 1 : 0;
          largest = Math.max(largest, difference(actual[t], expected[t]));
          positions++;
        }
      }
    }
    double mean = sum / positions;
    double share = (double) agreeing / positions;
    System.out.printf(
        Locale.ROOT,
        "KV cache %s: mean NLL %.6f (recorded %.6f), top-1 agreement %.2f %% of %d, largest logit difference %.4f%n",
        type.word(),
        mean,
        recorded.path("mean_nll").asDouble(),
        100 * share,
        positions,
        largest);
    assertThat(positions).isEqualTo(recorded.path("positions").asInt());
    assertThat(mean).isCloseTo(recorded.path("mean_nll").asDouble(), within(nll));
    assertThat(share).isGreaterThanOrEqualTo(agreement);
    assertThat(largest).isLessThan(logit);
  }

  private static float[][] logits(ModelHarness nano, int[] ids) {
    try (SequenceState state = nano.newSequence()) {
      return nano.logits(state, ids, CHUNK);
    }
  }

  @ParameterizedTest
  @EnumSource
  void continuesPromptsOfEveryLengthAsRecorded(KeyValueType type) {
    List<JsonNode> prompts = new ArrayList<>();
    Goldens.json("lily-nano/prompts.json").path("prompts").forEach(prompts::add);
    prompts.add(Goldens.json("lily-nano/long.json"));
    List<int[]> ids = prompts.stream().map(p -> Goldens.ints(p.path("prompt_ids"))).toList();
    List<int[]> answers;
    try (ModelHarness nano = nano(type, ids.size(), ids.size())) {
      answers = nano.greedy(ids, CHUNK, 64);
    }
    int compared = 0;
    for (int p = 0; p < ids.size(); p++) {
      int[] expected = Goldens.ints(prompts.get(p).path("greedy_ids"));
      int end = Math.min(prompts.get(p).path("end_at").asInt(), Math.min(63, expected.length - 1));
      JsonNode margins = prompts.get(p).path("greedy_margins");
      for (int step = 0; step <= end; step++, compared++) {
        if (answers.get(p)[step] != expected[step]) {
          assertThat(margins.path(step).asDouble())
              .as(
                  "prompt %d: step %d chose %d, not %d",
                  p, step, answers.get(p)[step], expected[step])
              .isLessThan(0.5);
          break;
        }
      }
    }
    System.out.println("KV cache " + type.word() + ": greedy steps as recorded: " + compared);
  }

  private static int argMax(float[] logits) {
    int best = 0;
    for (int t = 1; t < logits.length; t++) {
      best = logits[t] > logits[best] ? t : best;
    }
    return best;
  }

  private static double difference(float[] actual, float[] expected) {
    double largest = 0;
    for (int t = 0; t < expected.length; t++) {
      double difference = Math.abs((double) actual[t] - expected[t]);
      largest = difference <= largest ? largest : difference;
    }
    return largest;
  }

  private static double negativeLogLikelihood(float[] logits, int token) {
    double max = logits[argMax(logits)];
    double sum = 0;
    for (float logit : logits) {
      sum += Math.exp(logit - max);
    }
    return max + Math.log(sum) - logits[token];
  }
}
