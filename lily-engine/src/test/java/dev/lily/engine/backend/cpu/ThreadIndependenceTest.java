package dev.lily.engine.backend.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Any number of threads gives the same bits. */
class ThreadIndependenceTest {
  static Stream<Arguments> pathsAndTypes() {
    return KernelPaths.available()
        .flatMap(path -> Stream.of(KeyValueType.values()).map(type -> Arguments.of(path, type)));
  }

  @ParameterizedTest
  @MethodSource("pathsAndTypes")
  void givesTheSameBitsOnAnyNumberOfThreads(String kernels, KeyValueType type) {
    float[] one = logits(kernels, type, 1);
    for (int threads : new int[] {2, 3, 7}) {
      assertThat(logits(kernels, type, threads)).containsExactly(one);
    }
  }

  /** Logits of a prefill of two sequences and a few decoded rows. */
  private static float[] logits(String kernels, KeyValueType type, int threads) {
    int vocabulary = TinyModel.VOCABULARY;
    try (TinyModel model =
        new TinyModel(
            new CpuBackendProvider().open(new BackendOptions(threads, kernels)),
            TinyModel.Variant.of(2025),
            type)) {
      int[] tokens = new int[40];
      Arrays.setAll(tokens, i -> i * 37 % vocabulary);
      PageTable[] pages = {new PageTable(), new PageTable()};
      for (int i = 0; i < 6; i++) {
        pages[i % 2].add(i);
      }
      model.state().clearSlot(0);
      model.state().clearSlot(1);
      RowPlan plan = new RowPlan(TinyModel.LIMITS);
      plan.add(tokens, 0, 30, 0, pages[0], 0, 30, RowPlan.NO_SAMPLING);
      plan.add(tokens, 5, 21, 0, pages[1], 1, 21, RowPlan.NO_SAMPLING);
      float[] all = new float[(51 + 5) * vocabulary];
      model.forward(plan, all);
      float[] step = new float[vocabulary];
      for (int i = 0; i < 5; i++) {
        plan.clear();
        plan.add(tokens, 30 + i, 1, 30 + i, pages[0], 0, 1, RowPlan.NO_SAMPLING);
        model.forward(plan, step);
        System.arraycopy(step, 0, all, (51 + i) * vocabulary, vocabulary);
      }
      return all;
    }
  }
}
