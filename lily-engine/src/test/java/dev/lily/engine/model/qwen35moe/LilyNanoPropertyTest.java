package dev.lily.engine.model.qwen35moe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.cpu.KernelPaths;
import dev.lily.engine.model.SequenceState;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.JsonNode;

/** What must hold bit for bit on each kernel path: chunks, threads, batches and snapshots. */
class LilyNanoPropertyTest {
  private static final int[] PROMPT = prompts().get(4);

  private static List<int[]> prompts() {
    JsonNode prompts = Goldens.json("lily-nano/prompts.json").path("prompts");
    List<int[]> ids = new ArrayList<>();
    prompts.forEach(prompt -> ids.add(Goldens.ints(prompt.path("prompt_ids"))));
    return ids;
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void logitsDoNotDependOnThePrefillChunk(String kernels) {
    try (ModelHarness nano = ModelHarness.nano(kernels, 2, 64, 2, 64)) {
      float[][] whole = logits(nano, 64);
      for (int chunk : new int[] {1, 2, 3, 7, 31, 32, 33, 62}) {
        assertThat(logits(nano, chunk)).as("chunk of %d", chunk).isDeepEqualTo(whole);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void logitsDoNotDependOnTheNumberOfThreads(String kernels) {
    float[][] one;
    try (ModelHarness nano = ModelHarness.nano(kernels, 1, 64, 1, 64)) {
      one = logits(nano, 32);
    }
    for (int threads : new int[] {2, 3, 5}) {
      try (ModelHarness nano = ModelHarness.nano(kernels, threads, 64, 1, 64)) {
        assertThat(logits(nano, 32)).as("%d threads", threads).isDeepEqualTo(one);
      }
    }
  }

  private static float[][] logits(ModelHarness nano, int chunk) {
    try (SequenceState state = nano.newSequence()) {
      return nano.logits(state, PROMPT, chunk);
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void eightSequencesAnswerTogetherAsTheyDoAlone(String kernels) {
    List<int[]> eight = prompts().stream().filter(p -> p.length < 70).limit(8).toList();
    assertThat(eight).hasSize(8);
    try (ModelHarness nano = ModelHarness.nano(kernels, 2, 64, 8, 8)) {
      List<int[]> together = nano.greedy(eight, 64, 24);
      for (int i = 0; i < 8; i++) {
        assertThat(nano.greedy(List.of(eight.get(i)), 64, 24).getFirst())
            .isEqualTo(together.get(i));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void aRowIsTheSameInAMixedPlan(String kernels) {
    try (ModelHarness nano = ModelHarness.nano(kernels, 2, 64, 3, 66)) {
      float[][] alone = logits(nano, 64);
      List<SequenceState> others = new ArrayList<>();
      for (int[] other : prompts().subList(0, 2)) {
        SequenceState state = nano.newSequence();
        nano.logits(state, other, 64);
        others.add(state);
      }
      try (SequenceState state = nano.newSequence()) {
        int half = PROMPT.length / 2;
        nano.logits(state, Arrays.copyOf(PROMPT, half), half);
        int rest = PROMPT.length - half;
        int vocabulary = nano.config.vocabSize();
        float[] copied = new float[(rest + 2) * vocabulary];
        nano.plan().clear();
        nano.addRows(others.get(0), new int[] {17}, 0, 1, 1, RowPlan.NO_SAMPLING);
        nano.addRows(state, PROMPT, half, rest, rest, RowPlan.NO_SAMPLING);
        nano.addRows(others.get(1), new int[] {17}, 0, 1, 1, RowPlan.NO_SAMPLING);
        nano.forward(
            (pass, what, layer, tensor) -> {
              if (what == PassObserver.Activation.LOGITS) {
                pass.copyOut(tensor, 0, rest + 2, copied);
              }
            });
        for (int i = 0; i < rest; i++) {
          assertThat(Arrays.copyOfRange(copied, (1 + i) * vocabulary, (2 + i) * vocabulary))
              .isEqualTo(alone[half + i]);
        }
      }
      others.forEach(SequenceState::close);
      assertThat(nano.model.states().usedPages()).isZero();
      assertThat(nano.model.states().usedSlots()).isZero();
    }
  }

  @ParameterizedTest
  @MethodSource("dev.lily.engine.backend.cpu.KernelPaths#available")
  void aRestoredSnapshotContinuesAsIfItHadNeverBeenLeft(String kernels) {
    try (ModelHarness nano = ModelHarness.nano(kernels, 2, 64, 2, 64)) {
      float[][] straight = logits(nano, 64);
      for (int cut : new int[] {1, 31, 32, 33, 50}) {
        try (SequenceState state = nano.newSequence()) {
          nano.logits(state, Arrays.copyOf(PROMPT, cut), 64);
          try (SequenceState.Snapshot snapshot = Objects.requireNonNull(state.snapshot())) {
            nano.logits(state, new Random(cut).ints(40, 0, 4000).toArray(), 64);
            state.restore(snapshot);
            assertThat(state.position()).isEqualTo(cut);
            float[][] rest = nano.logits(state, Arrays.copyOfRange(PROMPT, cut, PROMPT.length), 64);
            assertThat(rest)
                .as("after a cut at %d", cut)
                .isDeepEqualTo(Arrays.copyOfRange(straight, cut, PROMPT.length));
          }
        }
      }
      assertThat(nano.model.states().usedPages()).isZero();
      assertThat(nano.model.states().usedSlots()).isZero();
    }
  }

  @Test
  void scalarAndVectorKernelsAgreeClosely() {
    assumeThat(KernelPaths.available()).as("kernel paths in this JVM").contains("vector");
    float[][] scalar;
    float[][] vector;
    try (ModelHarness nano = ModelHarness.nano("scalar", KeyValueType.FP32, 2, 64, 1, 64)) {
      scalar = logits(nano, 64);
    }
    try (ModelHarness nano = ModelHarness.nano("vector", KeyValueType.FP32, 2, 64, 1, 64)) {
      vector = logits(nano, 64);
    }
    double largest = 0;
    for (int t = 0; t < scalar.length; t++) {
      for (int v = 0; v < scalar[t].length; v++) {
        largest = Math.max(largest, Math.abs(scalar[t][v] - vector[t][v]));
      }
    }
    assertThat(largest).isLessThan(1e-3);
  }
}
