package dev.lily.engine.backend.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.contract.TinyModel;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import java.lang.management.ManagementFactory;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Passes allocate nothing once the compiler has seen them, on any thread. */
@Tag("allocation")
class CpuAllocationTest {
  private static final int ROUNDS = 400;
  private static final int PASSES = 50;

  private final ThreadMXBean threads = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);

  static Stream<Arguments> pathsAndSequences() {
    return KernelPaths.available()
        .flatMap(
            path ->
                Stream.of(KeyValueType.values())
                    .flatMap(
                        type ->
                            Stream.of(Arguments.of(path, type, 1), Arguments.of(path, type, 3))));
  }

  @ParameterizedTest
  @MethodSource("pathsAndSequences")
  void allocatesNothingInSteadyState(String kernels, KeyValueType type, int sequences) {
    try (TinyModel model =
        new TinyModel(
            new CpuBackendProvider().open(new BackendOptions(2, kernels)),
            TinyModel.Variant.of(1),
            type)) {
      PageTable[] pages = new PageTable[sequences];
      RowPlan plan = new RowPlan(TinyModel.LIMITS);
      for (int s = 0; s < sequences; s++) {
        pages[s] = new PageTable();
        for (int i = 0; i < 8; i++) {
          pages[s].add(8 * s + i);
        }
        model.state().clearSlot(s);
        model
            .state()
            .beginSampling(
                s,
                SamplingParameters.of(SamplingOptions.builder().seed(7L).build(), 0, 3),
                new int[0]);
      }
      long[] ids = computeThreads();
      assertThat(ids).hasSize(2);
      long least = Long.MAX_VALUE;
      for (int round = 0; round < ROUNDS && least > 0; round++) {
        long before = allocated(ids);
        for (int pass = 0; pass < PASSES; pass++) {
          plan.clear();
          for (int s = 0; s < sequences; s++) {
            int count = 1 + s % 2;
            plan.add(TOKENS, 0, count, pass * count, pages[s], s, 1, s);
          }
          model.forward(plan, null);
        }
        least = Math.min(least, allocated(ids) - before);
      }
      assertThat(least).isZero();
    }
  }

  private static final int[] TOKENS = new int[2];

  private static long[] computeThreads() {
    return LongStream.concat(
            LongStream.of(Thread.currentThread().threadId()),
            Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("lily-cpu-"))
                .mapToLong(Thread::threadId))
        .toArray();
  }

  private long allocated(long[] ids) {
    long sum = 0;
    for (long id : ids) {
      sum += threads.getThreadAllocatedBytes(id);
    }
    return sum;
  }
}
