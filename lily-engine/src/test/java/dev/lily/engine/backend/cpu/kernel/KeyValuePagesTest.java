package dev.lily.engine.backend.cpu.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.KeyValueType;
import dev.lily.engine.backend.StateLayout;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class KeyValuePagesTest {
  private static final int LAYERS = 2;
  private static final int HEADS = 3;

  private final Arena arena = Arena.ofAuto();

  private KeyValuePages pages(KeyValueType type, int headDim, int pageTokens, int count) {
    StateLayout layout =
        new StateLayout(
            LAYERS, HEADS, headDim, type, pageTokens, count, 0, 4, 64, 2, 16, 16, 1, 1, 100);
    return KeyValuePages.of(
        new MemoryBlocks(arena, count, KeyValuePages.pageBytes(layout), true), layout);
  }

  /** What a key and a value become. */
  private float[] kept(KeyValueType type, float... x) {
    KeyValuePages pages = pages(type, x.length, 4, 1);
    pages.prepare(0);
    pages.put(0, 1, 2, 3, x, 0, x, 0);
    float[] key = new float[x.length];
    float[] value = new float[x.length];
    pages.key(0, 1, 2, 3, key);
    pages.value(0, 1, 2, 3, value);
    assertThat(value).containsExactly(key);
    return key;
  }

  @Test
  void keepsFp32AsItIs() {
    float[] x = {1, -0.1f, Float.MIN_VALUE, Float.MAX_VALUE, 0x1.fffffep-3f};
    assertThat(kept(KeyValueType.FP32, x)).containsExactly(x);
  }

  @Test
  void roundsToTheNearestBf16AndTiesToEven() {
    assertThat(
            kept(
                KeyValueType.BF16,
                1f,
                0x1.01p0f, // halfway from 1 to 1 + 2^-7
                0x1.03p0f, // halfway from 1 + 2^-7 to 1 + 2^-6
                0x1.010002p0f,
                -0x1.00fffep0f,
                -0x1.03p-5f,
                0x1.ffp3f,
                -0f,
                Float.MIN_VALUE))
        .containsExactly(1f, 1f, 0x1.04p0f, 0x1.02p0f, -1f, -0x1.04p-5f, 16f, -0f, 0f);
  }

  @Test
  void keepsWhatIsNotFiniteInBf16() {
    assertThat(
            kept(
                KeyValueType.BF16,
                Float.POSITIVE_INFINITY,
                Float.MAX_VALUE,
                Float.NaN,
                Float.intBitsToFloat(0x7F800001),
                Float.intBitsToFloat(-1)))
        .containsExactly(
            Float.POSITIVE_INFINITY, Float.POSITIVE_INFINITY, Float.NaN, Float.NaN, Float.NaN);
  }

  @Test
  void roundsToTheNearestOf127StepsToTheLargestMagnitude() {
    // A step is 0.5.
    assertThat(kept(KeyValueType.INT8, 1.2f, -63.5f, 0.3f, -0.2f, 20.8f, 0))
        .containsExactly(1, -63.5f, 0.5f, 0, 21, 0);
    // Rows have scales of their own.
    assertThat(kept(KeyValueType.INT8, 0x1p-20f, 0x1p-21f * 127 / 127, -127 * 0x1p-20f))
        .containsExactly(0x1p-20f, 0x1p-20f, -127 * 0x1p-20f);
  }

  @Test
  void keepsARowOfZerosAndOneThatIsNearlyZeroInInt8() {
    assertThat(kept(KeyValueType.INT8, 0, -0f, 0)).containsExactly(0, 0, 0);
    float[] tiny = kept(KeyValueType.INT8, Float.MIN_VALUE, -100 * Float.MIN_VALUE, 0);
    for (float x : tiny) {
      assertThat(Math.abs(x)).isLessThanOrEqualTo(127 * Float.MIN_VALUE);
    }
  }

  @Test
  void showsWhatIsNotFiniteInInt8() {
    assertThat(kept(KeyValueType.INT8, 1, Float.NaN, 2)).containsOnly(Float.NaN);
    assertThat(kept(KeyValueType.INT8, 1, Float.NEGATIVE_INFINITY)).containsOnly(Float.NaN);
  }

  static Stream<Arguments> shapes() {
    return Stream.of(KeyValueType.values())
        .flatMap(
            type ->
                Stream.of(
                    Arguments.of(type, 64, 32),
                    Arguments.of(type, 256, 32),
                    Arguments.of(type, 13, 5),
                    Arguments.of(type, 48, 40),
                    Arguments.of(type, 2, 1)));
  }

  @ParameterizedTest
  @MethodSource("shapes")
  void findsEveryTokenOfEveryHeadWhereItWasPut(KeyValueType type, int headDim, int pageTokens) {
    KeyValuePages pages = pages(type, headDim, pageTokens, 2);
    Random random = new Random(7);
    int rows = 2 * LAYERS * HEADS * pageTokens;
    float[] keys = uniform(random, rows * headDim);
    float[] values = uniform(random, rows * headDim);
    pages.prepare(0);
    pages.prepare(1);
    for (int row = 0; row < rows; row++) {
      pages.put(
          page(row, pageTokens),
          layer(row, pageTokens),
          row / pageTokens % HEADS,
          row % pageTokens,
          keys,
          row * headDim,
          values,
          row * headDim);
    }
    float[] read = new float[headDim];
    for (int row = 0; row < rows; row++) {
      int page = page(row, pageTokens);
      int layer = layer(row, pageTokens);
      int head = row / pageTokens % HEADS;
      pages.key(page, layer, head, row % pageTokens, read);
      isClose(type, read, Arrays.copyOfRange(keys, row * headDim, (row + 1) * headDim));
      pages.value(page, layer, head, row % pageTokens, read);
      isClose(type, read, Arrays.copyOfRange(values, row * headDim, (row + 1) * headDim));
    }
  }

  private static int page(int row, int pageTokens) {
    return row / pageTokens / HEADS / LAYERS;
  }

  private static int layer(int row, int pageTokens) {
    return row / pageTokens / HEADS % LAYERS;
  }

  private static float[] uniform(Random random, int count) {
    float[] x = new float[count];
    for (int i = 0; i < count; i++) {
      x[i] = 2 * random.nextFloat() - 1;
    }
    return x;
  }

  /** Within half a step of the type. */
  private static void isClose(KeyValueType type, float[] actual, float[] expected) {
    float largest = 0;
    for (float x : expected) {
      largest = Math.max(largest, Math.abs(x));
    }
    for (int i = 0; i < expected.length; i++) {
      float step =
          switch (type) {
            case FP32 -> 0;
            case BF16 -> Math.ulp(expected[i]) * 0x1p16f;
            case INT8 -> largest / 127;
          };
      assertThat(Math.abs(actual[i] - expected[i])).isLessThanOrEqualTo(0.5001f * step);
    }
  }

  @ParameterizedTest
  @EnumSource
  void copiesAPageAndWritesNoOtherToken(KeyValueType type) {
    KeyValuePages pages = pages(type, 64, 32, 2);
    pages.prepare(0);
    float[] x = uniform(new Random(3), 64);
    pages.put(0, 1, 2, 17, x, 0, x, 0);
    pages.copy(0, 1);
    float[] once = new float[64];
    float[] copied = new float[64];
    pages.key(0, 1, 2, 17, once);
    pages.key(1, 1, 2, 17, copied);
    assertThat(copied).containsExactly(once);
    pages.put(1, 1, 2, 17, new float[64], 0, new float[64], 0);
    pages.key(0, 1, 2, 17, copied);
    assertThat(copied).containsExactly(once);
    float[] neighbour = new float[64];
    for (int token : new int[] {0, 1, 15, 16, 18, 31}) {
      pages.key(0, 1, 2, token, neighbour);
      assertThat(neighbour).containsOnly(Float.NaN);
      pages.value(0, 1, 2, token, neighbour);
      assertThat(neighbour).containsOnly(Float.NaN);
    }
  }
}
