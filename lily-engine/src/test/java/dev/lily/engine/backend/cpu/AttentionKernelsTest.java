package dev.lily.engine.backend.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.StateLayout;
import dev.lily.engine.backend.cpu.kernel.AttentionKernels;
import dev.lily.engine.backend.cpu.kernel.AttentionSpan;
import dev.lily.engine.backend.cpu.kernel.KeyValuePages;
import dev.lily.engine.backend.cpu.kernel.MemoryBlocks;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Attention over one span against plain mathematics on what the pages hold, for every type. */
class AttentionKernelsTest {
  private static final int LAYER = 1;
  private static final int KV_HEAD = 1;

  /** Roundings of a sum of that many products of numbers up to 1 are far below. */
  private static final double TOLERANCE = 2e-5;

  /** Heads that share a KV head, their dimensions, tokens of a page, and the span. */
  private record Shape(int heads, int headDim, int pageTokens, int from, int to) {}

  static Stream<Arguments> cases() {
    return KernelPaths.available()
        .flatMap(
            path ->
                Stream.of(KeyValueType.values())
                    .flatMap(
                        type ->
                            Stream.of(
                                    new Shape(8, 256, 32, 0, 100),
                                    new Shape(4, 64, 32, 32, 81),
                                    new Shape(2, 64, 32, 0, 1),
                                    new Shape(7, 48, 40, 40, 96),
                                    new Shape(3, 20, 5, 10, 33),
                                    new Shape(1, 13, 16, 0, 47),
                                    new Shape(6, 2, 1, 3, 9))
                                .map(shape -> Arguments.of(path, type, shape))));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void attendsToWhatThePagesHold(String path, KeyValueType type, Shape shape) {
    Random random = new Random(shape.hashCode());
    int headDim = shape.headDim();
    PageTable table = new PageTable();
    int count = (shape.to() + shape.pageTokens() - 1) / shape.pageTokens();
    for (int i = count - 1; i >= 0; i--) {
      table.add(i);
    }
    StateLayout layout =
        new StateLayout(
            2, 2, headDim, type, shape.pageTokens(), count, 0, 4, 64, 2, 16, 16, 1, 1, 100);
    try (Arena arena = Arena.ofConfined()) {
      KeyValuePages pages =
          KeyValuePages.of(
              new MemoryBlocks(arena, count, KeyValuePages.pageBytes(layout), true), layout);
      for (int i = 0; i < count; i++) {
        pages.prepare(i);
      }
      for (int t = 0; t < shape.to(); t++) {
        pages.put(
            table.page(t / shape.pageTokens()),
            LAYER,
            KV_HEAD,
            t % shape.pageTokens(),
            uniform(random, headDim),
            0,
            uniform(random, headDim),
            0);
      }
      float[] query = uniform(random, 5 + shape.heads() * headDim);
      float scale = (float) (1 / Math.sqrt(headDim));
      AttentionSpan span = new AttentionSpan(shape.heads(), 128, headDim);
      span.heads(LAYER, KV_HEAD, shape.heads(), scale);
      span.row(table, query, 5);
      span.positions(shape.from(), shape.to());
      int size = headDim + AttentionKernels.PARTIAL_EXTRA;
      float[] partial = new float[3 + shape.heads() * size];
      Arrays.fill(partial, Float.NaN);
      KernelChoice.ofThisJvm().kernels(path).attention().attend(pages, span, partial, 3);
      for (int h = 0; h < shape.heads(); h++) {
        double[] expected = expected(pages, table, shape, query, 5 + h * headDim, scale);
        int at = 3 + h * size;
        double factor = Math.exp(partial[at + headDim] - expected[headDim]);
        for (int i = 0; i < headDim; i++) {
          assertThat(partial[at + i] * factor / expected[headDim + 1])
              .isCloseTo(expected[i] / expected[headDim + 1], within(TOLERANCE));
        }
        assertThat((double) partial[at + headDim]).isCloseTo(expected[headDim], within(TOLERANCE));
        assertThat(partial[at + headDim + 1] * factor / expected[headDim + 1])
            .isCloseTo(1, within(TOLERANCE));
      }
    }
  }

  private static double[] expected(
      KeyValuePages pages, PageTable table, Shape shape, float[] query, int at, double scale) {
    int headDim = shape.headDim();
    float[] row = new float[headDim];
    double[] scores = new double[shape.to()];
    double max = Double.NEGATIVE_INFINITY;
    for (int t = shape.from(); t < shape.to(); t++) {
      int page = table.page(t / shape.pageTokens());
      pages.key(page, LAYER, KV_HEAD, t % shape.pageTokens(), row);
      for (int d = 0; d < headDim; d++) {
        scores[t] += (double) query[at + d] * row[d];
      }
      scores[t] *= scale;
      max = Math.max(max, scores[t]);
    }
    double[] result = new double[headDim + 2];
    result[headDim] = max;
    for (int t = shape.from(); t < shape.to(); t++) {
      int page = table.page(t / shape.pageTokens());
      pages.value(page, LAYER, KV_HEAD, t % shape.pageTokens(), row);
      double p = Math.exp(scores[t] - max);
      result[headDim + 1] += p;
      for (int d = 0; d < headDim; d++) {
        result[d] += p * row[d];
      }
    }
    return result;
  }

  private static float[] uniform(Random random, int count) {
    float[] x = new float[count];
    for (int i = 0; i < count; i++) {
      x[i] = 2 * random.nextFloat() - 1;
    }
    return x;
  }
}
