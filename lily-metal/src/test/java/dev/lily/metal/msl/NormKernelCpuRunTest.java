package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class NormKernelCpuRunTest {
  private static final float EPS = 1e-6f;

  @ParameterizedTest
  @CsvSource({"1, 2048, true", "3, 256, true", "2, 13, false", "1, 1, true", "2, 4098, true"})
  void addsTheBranchAndNormalizes(int rows, int columns, boolean hasBranch) {
    CpuKernels kernels = Tools.kernels();
    Data data = new Data(columns);
    float[] x = data.uniform(rows * columns, -3, 3);
    float[] branch = data.uniformBf16(rows * columns, -2, 2);
    float[] gain = data.uniform(columns, 0.5, 1.5);
    double[] sum = new double[x.length];
    double[] expected = new double[x.length];
    for (int r = 0; r < rows; r++) {
      double squares = 0;
      for (int c = 0; c < columns; c++) {
        int i = r * columns + c;
        sum[i] = hasBranch ? x[i] + branch[i] : x[i];
        squares += sum[i] * sum[i];
      }
      for (int c = 0; c < columns; c++) {
        int i = r * columns + c;
        expected[i] = sum[i] / Math.sqrt(squares / columns + EPS) * gain[c];
      }
    }
    for (int order : CpuKernels.ORDERS) {
      MemorySegment sums = Data.poisonedF32(x.length);
      MemorySegment n = Data.poisonedBf16(x.length);
      kernels
          .inOrder(order)
          .dispatch(
              "add_norm",
              Geometry.of(rows, 256),
              Data.f32(x),
              hasBranch ? Data.bf16(branch) : Data.unused(),
              Data.f32(gain),
              sums,
              n,
              Data.struct(columns, hasBranch ? 1 : 0, EPS));
      Data.assertClose(Data.readF32(sums), sum, 1e-6);
      Data.assertClose(Data.readBf16(n), expected, expected, Data.BF16);
    }
  }

  @ParameterizedTest
  @CsvSource({"256"})
  void mayUpdateTheResidualInPlace(int columns) {
    Data data = new Data(1);
    float[] x = data.uniform(columns, -3, 3);
    float[] branch = data.uniformBf16(columns, -2, 2);
    MemorySegment inPlace = Data.f32(x);
    MemorySegment apart = Data.poisonedF32(columns);
    MemorySegment n = Data.poisonedBf16(columns);
    MemorySegment other = Data.poisonedBf16(columns);
    MemorySegment gain = Data.f32(data.uniform(columns, 0.5, 1.5));
    MemorySegment parameters = Data.struct(columns, 1, EPS);
    Geometry geometry = Geometry.of(1, 256);
    Tools.kernels()
        .shared()
        .dispatch("add_norm", geometry, inPlace, Data.bf16(branch), gain, inPlace, n, parameters);
    Tools.kernels()
        .dispatch(
            "add_norm", geometry, Data.f32(x), Data.bf16(branch), gain, apart, other, parameters);
    assertThat(Data.readF32(inPlace)).isEqualTo(Data.readF32(apart));
    assertThat(Data.readBf16(n)).isEqualTo(Data.readBf16(other));
  }
}
