package dev.lily.engine.model.qwen35moe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.cpu.KernelPaths;
import dev.lily.engine.model.SequenceState;
import dev.lily.engine.model.qwen35moe.PassObserver.Activation;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;

/** The architecture against a float64 oracle on a tiny model with generated weights. */
class TinyModelFixtureTest {
  private static final PassLimits LIMITS = new PassLimits(32, 1, 32, 64);
  private static final double TOLERANCE = 1e-4;
  private static final int[] TOKENS = Goldens.ints(TinyCheckpoint.FIXTURE.path("token_ids"));

  @TempDir Path directory;

  @Test
  void generatesTheRecordedWeights() {
    TinyCheckpoint.shapes()
        .forEach(
            (name, shape) -> {
              JsonNode recorded = TinyCheckpoint.FIXTURE.path("tensors").path(name);
              int size = 1;
              for (long dimension : shape) {
                size *= (int) dimension;
              }
              float[] values = TinyCheckpoint.generate(name, size);
              double sum = 0;
              for (float value : values) {
                sum += value;
              }
              assertThat(sum).as(name).isCloseTo(recorded.path("sum").asDouble(), within(1e-6));
              for (int i = 0; i < 4; i++) {
                assertThat((double) values[i]).isEqualTo(recorded.path("first").path(i).asDouble());
              }
            });
  }

  static Stream<Arguments> pathsAndChunks() {
    return KernelPaths.available()
        .flatMap(path -> Stream.of(32, 5, 1).map(chunk -> Arguments.of(path, chunk)));
  }

  @ParameterizedTest
  @MethodSource("pathsAndChunks")
  void logitsHiddenStatesAndRoutesAgreeInTheRawLayout(String kernels, int chunk) {
    TinyCheckpoint.writeHuggingFace(directory);
    Map<Integer, float[]> layerInputs = new TreeMap<>();
    float[][] logits;
    try (ModelHarness tiny = ModelHarness.open(directory, kernels, KeyValueType.FP32, 2, LIMITS);
        SequenceState state = tiny.newSequence()) {
      int[] fed = {0};
      logits =
          tiny.logits(
              state,
              TOKENS,
              chunk,
              (pass, what, layer, tensor) -> {
                int rows = tiny.plan().numRows();
                if (what == Activation.LAYER_INPUT && layer > 0) {
                  float[] last = new float[tensor.columns()];
                  pass.copyOut(tensor, rows - 1, 1, last);
                  layerInputs.put(layer - 1, last);
                }
                if (what == Activation.ROUTER_LOGITS) {
                  float[] router = new float[rows * tensor.columns()];
                  pass.copyOut(tensor, 0, rows, router);
                  for (int r = 0; r < rows; r++) {
                    routesAgree(router, r, tensor.columns(), layer, fed[0] + r);
                  }
                }
                if (what == Activation.LOGITS) {
                  fed[0] += rows;
                }
              });
    }
    JsonNode expected = TinyCheckpoint.FIXTURE;
    for (int t = 0; t < TOKENS.length; t++) {
      int best = 0;
      for (int v = 0; v < logits[t].length; v++) {
        assertThat((double) logits[t][v])
            .as("logit %d of token %d", v, t)
            .isCloseTo(expected.path("logits").path(t).path(v).asDouble(), within(TOLERANCE));
        best = logits[t][v] > logits[t][best] ? v : best;
      }
      assertThat(best).isEqualTo(expected.path("argmax").path(t).asInt());
    }
    layerInputs.forEach(
        (layer, hidden) -> {
          for (int i = 0; i < hidden.length; i++) {
            assertThat((double) hidden[i])
                .as("layer %d element %d", layer, i)
                .isCloseTo(
                    expected.path("hidden_after_layer_last_token").path(layer).path(i).asDouble(),
                    within(TOLERANCE));
          }
        });
    assertThat(layerInputs).hasSize(3);
  }

  private static void routesAgree(float[] router, int row, int experts, int layer, int token) {
    int first = -1;
    int second = -1;
    for (int e = 0; e < experts; e++) {
      float logit = router[row * experts + e];
      if (first < 0 || logit > router[row * experts + first]) {
        second = first;
        first = e;
      } else if (second < 0 || logit > router[row * experts + second]) {
        second = e;
      }
    }
    JsonNode recorded = TinyCheckpoint.FIXTURE.path("router_top2").path(layer).path(token);
    assertThat(new int[] {first, second})
        .as("experts of token %d in layer %d", token, layer)
        .containsExactly(Goldens.ints(recorded));
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void quantisedWeightsComputeWhatTheirDequantisedValuesDo(String kernels) {
    TinyCheckpoint.writeMlx(directory, true);
    float[][] quantized = logits(kernels);
    TinyCheckpoint.writeMlx(directory, false);
    float[][] dequantized = logits(kernels);
    for (int t = 0; t < TOKENS.length; t++) {
      for (int v = 0; v < quantized[t].length; v++) {
        assertThat(quantized[t][v]).isCloseTo(dequantized[t][v], within(1e-4f));
      }
    }
    assertThat((double) quantized[0][0])
        .as("quantisation must have changed something")
        .isNotCloseTo(
            TinyCheckpoint.FIXTURE.path("logits").path(0).path(0).asDouble(), within(1e-6));
  }

  private float[][] logits(String kernels) {
    try (ModelHarness tiny = ModelHarness.open(directory, kernels, KeyValueType.FP32, 2, LIMITS);
        SequenceState state = tiny.newSequence()) {
      return tiny.logits(state, TOKENS, 32);
    }
  }
}
