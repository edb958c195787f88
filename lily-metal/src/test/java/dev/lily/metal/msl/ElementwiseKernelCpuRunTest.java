package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import dev.lily.metal.msl.Weights.Format;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ElementwiseKernelCpuRunTest {
  @ParameterizedTest
  @EnumSource
  void embedsGivenAndPreviousTokensAndTakesOnesOutsideTheVocabularyAsZero(Format format) {
    int columns = 320;
    Weights w = Weights.random(new Data(1), format, 1, 10, columns);
    int[] tokens = {9, -1, 0, -1, 10, -1};
    int[] slots = {0, 1, 0, 0, 0, 2};
    int[] last = {4, 7, -1};
    int[] chosen = {9, 7, 0, 4, 0, 0};
    MemorySegment out = Data.poisonedF32(tokens.length * columns);
    Tools.kernels()
        .dispatch(
            "embed_%s_f32".formatted(format.kernelName()),
            Geometry.of(2, tokens.length, 1, 256),
            w.codes(),
            w.scales(),
            w.biases(),
            Data.ints(tokens),
            Data.ints(slots),
            Data.ints(last),
            out,
            Data.struct(columns, 64, 10));
    float[] actual = Data.readF32(out);
    for (int r = 0; r < tokens.length; r++) {
      for (int c = 0; c < columns; c++) {
        assertThat(actual[r * columns + c]).isEqualTo((float) w.values()[chosen[r] * columns + c]);
      }
    }
  }

  @Test
  void gathersRowsAndAddsTheBranch() {
    Data data = new Data(2);
    float[] x = data.uniform(5 * 300, -2, 2);
    float[] branch = data.uniformBf16(5 * 300, -2, 2);
    MemorySegment rows = Data.poisonedF32(2 * 300);
    Tools.kernels()
        .dispatch(
            "gather_rows",
            Geometry.of(2, 2, 1, 256),
            Data.f32(x),
            Data.bf16(branch),
            Data.ints(4, 1),
            rows,
            Data.struct(300));
    float[] actual = Data.readF32(rows);
    for (int c = 0; c < 300; c++) {
      assertThat(actual[c]).isEqualTo(x[1200 + c] + branch[1200 + c]);
      assertThat(actual[300 + c]).isEqualTo(x[300 + c] + branch[300 + c]);
    }
  }

  @Test
  void convertsBetweenTypesToTheNearestValue() {
    float[] x = new Data(3).uniform(500, -100, 100);
    x[7] = Float.POSITIVE_INFINITY;
    x[8] = Float.NaN;
    MemorySegment narrow = Data.poisonedBf16(500);
    MemorySegment wide = Data.poisonedF32(500);
    MemorySegment count = Data.struct(500);
    Geometry geometry = Geometry.of(2, 256);
    Tools.kernels().dispatch("convert_f32_bf16", geometry, Data.f32(x), narrow, count);
    Tools.kernels().dispatch("convert_bf16_f32", geometry, narrow, wide, count);
    float[] actual = Data.readF32(wide);
    assertThat(actual[8]).isNaN();
    for (int i = 0; i < 500; i++) {
      if (i != 8) {
        assertThat(actual[i]).isEqualTo(Data.toBf16(x[i]));
      }
    }
  }

  @Test
  void copiesAndClearsWords() {
    MemorySegment from = Data.f32(new Data(4).uniform(400, -1, 1));
    MemorySegment to = Data.poisonedF32(404);
    Tools.kernels().dispatch("copy_words", Geometry.of(1, 256), from, to, Data.struct(100));
    assertThat(to.asSlice(0, 1600).mismatch(from)).isEqualTo(-1);
    assertThat(Data.readF32(to)[400]).isNaN();
    Tools.kernels().dispatch("clear_words", Geometry.of(1, 256), to, Data.struct(100));
    assertThat(Data.readF32(to.asSlice(0, 1600))).containsOnly(0);
    assertThat(Data.readF32(to)[400]).isNaN();
  }
}
