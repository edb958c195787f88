package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import dev.lily.metal.msl.Weights.Format;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MatmulKernelCpuRunTest {
  private static final float EPS = 1e-6f;

  private static int ceilDiv(int a, int b) {
    return Math.ceilDiv(a, b);
  }

  /** One matrix over some rows by a decode kernel. */
  private static float[] matvec(
      CpuKernels kernels, Weights w, float[] x, int rows, int o, int r, boolean f32) {
    MemorySegment out =
        f32 ? Data.poisonedF32(rows * w.outputs()) : Data.poisonedBf16(rows * w.outputs());
    String name =
        "matvec_%s_%s_o%d_r%d".formatted(w.format().kernelName(), f32 ? "f32" : "bf16", o, r);
    MemorySegment none = Data.unused();
    kernels.dispatch(
        name,
        Geometry.of(ceilDiv(w.outputs(), 8 * o), ceilDiv(rows, r), 1, 256),
        w.codes(),
        w.scales(),
        w.biases(),
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        Data.bf16(x),
        out,
        none,
        none,
        none,
        Data.struct(w.columns(), w.groupSize(), w.outputs(), 0, 0, 0, rows, 0, EPS));
    return f32 ? Data.readF32(out) : Data.readBf16(out);
  }

  private static void check(Weights w, float[] x, int rows, float[] actual, double tolerance) {
    double[] expected = new double[rows * w.outputs()];
    double[] magnitude = new double[expected.length];
    for (int r = 0; r < rows; r++) {
      double[][] products = w.multiply(0, x, r * w.columns());
      System.arraycopy(products[0], 0, expected, r * w.outputs(), w.outputs());
      System.arraycopy(products[1], 0, magnitude, r * w.outputs(), w.outputs());
    }
    Data.assertClose(actual, expected, magnitude, tolerance);
  }

  @ParameterizedTest
  @CsvSource({
    "Q4, 64, 64, 1, 1, 1", "Q4, 2048, 100, 1, 4, 1", "Q4, 320, 37, 1, 2, 1", "Q4, 128, 70, 2, 4, 2",
    "Q4, 4608, 33, 3, 2, 4", "Q4, 576, 40, 13, 2, 8", "Q8, 64, 1, 1, 1, 1",
        "Q8, 2048, 257, 1, 1, 1",
    "Q8, 192, 100, 5, 2, 8", "Q8, 1088, 30, 4, 2, 4", "BF16, 1, 1, 1, 1, 1",
        "BF16, 4098, 20, 2, 2, 8",
    "BF16, 13, 100, 3, 2, 8", "F32, 13, 64, 7, 2, 8", "F32, 4098, 13, 1, 1, 1",
  })
  void multipliesARow(Format format, int columns, int outputs, int rows, int o, int r) {
    Data data = new Data(columns * 31L + outputs);
    Weights w = Weights.random(data, format, 1, outputs, columns);
    float[] x = data.uniformBf16(rows * columns, -2, 2);
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      CpuKernels kernels = Tools.kernels().inOrder(order);
      float[] out = matvec(kernels, w, x, rows, o, r, true);
      check(w, x, rows, out, 1e-6 * (4 + Math.sqrt(columns)));
      assertThat(out).isEqualTo(first == null ? out : first);
      first = out;
    }
    check(w, x, rows, matvec(Tools.kernels(), w, x, rows, o, r, false), Data.BF16);
  }

  @ParameterizedTest
  @ValueSource(ints = {32, 96, 128})
  void takesEveryGroupSize(int groupSize) {
    for (Format format : new Format[] {Format.Q4, Format.Q8}) {
      Data data = new Data(groupSize);
      Weights w = Weights.random(data, format, 1, 21, 6 * groupSize, groupSize, 0.5);
      float[] x = data.uniformBf16(w.columns(), -2, 2);
      check(w, x, 1, matvec(Tools.kernels(), w, x, 1, 2, 1, true), 1e-5);
    }
  }

  @ParameterizedTest
  @CsvSource({"Q4", "Q8"})
  void givesARowTheSameBitsWhateverTheNumberOfRowsAndOutputs(Format format) {
    CpuKernels kernels = Tools.kernels();
    Data data = new Data(3);
    Weights w = Weights.random(data, format, 1, 50, 1152);
    float[] x = data.uniformBf16(8 * w.columns(), -2, 2);
    float[] batch = matvec(kernels, w, x, 8, 2, 8, true);
    assertThat(matvec(kernels, w, x, 8, 2, 4, true)).isEqualTo(batch);
    assertThat(matvec(kernels, w, x, 8, 4, 2, true)).isEqualTo(batch);
    float[] rounded = new float[batch.length];
    for (int i = 0; i < batch.length; i++) {
      rounded[i] = Data.toBf16(batch[i]);
    }
    assertThat(matvec(kernels, w, x, 8, 2, 8, false)).isEqualTo(rounded);
    assertThat(matvec(kernels, w, x, 8, 2, 4, false)).isEqualTo(rounded);
    assertThat(matvec(kernels, w, x, 8, 4, 2, false)).isEqualTo(rounded);
    for (int o : new int[] {1, 2, 4}) {
      assertThat(matvec(kernels, w, Arrays.copyOf(x, w.columns()), 1, o, 1, false))
          .isEqualTo(Arrays.copyOf(rounded, 50));
    }
    for (int o : new int[] {1, 2, 4}) {
      for (int r = 0; r < 8; r++) {
        float[] row = Arrays.copyOfRange(x, r * w.columns(), (r + 1) * w.columns());
        assertThat(matvec(kernels, w, row, 1, o, 1, true))
            .isEqualTo(Arrays.copyOfRange(batch, r * 50, (r + 1) * 50));
      }
    }
  }

  @Test
  void multipliesFourMatricesAtOnceAsOneByOne() {
    CpuKernels kernels = Tools.kernels();
    Data data = new Data(5);
    int[] outputs = {100, 64, 4, 33};
    float[] x = data.uniformBf16(2 * 256, -2, 2);
    List<MemorySegment> buffers = new ArrayList<>();
    List<Weights> weights = new ArrayList<>();
    int groups = 0;
    for (int count : outputs) {
      Weights w = Weights.random(data, Format.Q4, 1, count, 256);
      weights.add(w);
      buffers.addAll(List.of(w.codes(), w.scales(), w.biases()));
      groups += ceilDiv(count, 32);
    }
    buffers.add(Data.bf16(x));
    List<MemorySegment> outs = new ArrayList<>();
    for (int count : outputs) {
      outs.add(Data.poisonedBf16(2 * count));
    }
    buffers.addAll(outs);
    buffers.add(Data.struct(256, 64, 100, 64, 4, 33, 2, 0, EPS));
    kernels.dispatch(
        "matvec_q4_bf16_o4_r2",
        Geometry.of(groups, 1, 1, 256),
        buffers.toArray(MemorySegment[]::new));
    for (int m = 0; m < 4; m++) {
      assertThat(Data.readBf16(outs.get(m)))
          .isEqualTo(matvec(kernels, weights.get(m), x, 2, 4, 2, false));
    }
  }

  @ParameterizedTest
  @CsvSource({
    "q4_bf16_o4, Q4, 32, false",
    "q4_bf16_o2, Q4, 16, false",
    "q4_f32_o4, Q4, 128, true",
    "q8_f32_o1, Q8, 8, true"
  })
  void normalizesItsOwnInputAsTheNormKernelDoes(
      String kernel, Format format, int perGroup, boolean f32) {
    Data data = new Data(6);
    int columns = 512;
    int outputs = 170;
    Weights w = Weights.random(data, format, 1, outputs, columns);
    MemorySegment x = Data.f32(data.uniform(columns, -3, 3));
    MemorySegment branch = Data.bf16(data.uniform(columns, -2, 2));
    MemorySegment gain = Data.f32(data.uniform(columns, 0.5, 1.5));
    MemorySegment sums = Data.poisonedF32(columns);
    MemorySegment n = Data.poisonedBf16(columns);
    Tools.kernels()
        .dispatch(
            "add_norm",
            Geometry.of(1, 256),
            x,
            branch,
            gain,
            sums,
            n,
            Data.struct(columns, 1, EPS));
    float[] apart = matvec(Tools.kernels(), w, Data.readBf16(n), 1, 1, 1, f32);
    for (int order : CpuKernels.ORDERS) {
      MemorySegment out = f32 ? Data.poisonedF32(outputs) : Data.poisonedBf16(outputs);
      MemorySegment fusedSums = Data.poisonedF32(columns);
      MemorySegment fusedN = Data.poisonedBf16(columns);
      MemorySegment none = Data.unused();
      Tools.kernels()
          .inOrder(order)
          .dispatch(
              "norm_matvec_" + kernel,
              Geometry.of(ceilDiv(outputs, perGroup), 256),
              w.codes(),
              w.scales(),
              w.biases(),
              none,
              none,
              none,
              none,
              none,
              none,
              none,
              none,
              none,
              x,
              out,
              none,
              none,
              none,
              Data.struct(columns, 64, outputs, 0, 0, 0, 1, 1, EPS),
              branch,
              gain,
              fusedSums,
              fusedN);
      assertThat(Data.readBf16(fusedN)).isEqualTo(Data.readBf16(n));
      assertThat(Data.readF32(fusedSums)).isEqualTo(Data.readF32(sums));
      assertThat(f32 ? Data.readF32(out) : Data.readBf16(out)).isEqualTo(apart);
    }
  }

  /** One matrix over some rows by a prefill kernel. */
  private static float[] gemm(
      CpuKernels kernels, Weights w, float[] x, int rows, int tile, boolean f32) {
    MemorySegment out =
        f32 ? Data.poisonedF32(rows * w.outputs()) : Data.poisonedBf16(rows * w.outputs());
    kernels.dispatch(
        "gemm_%s_%s_m%d".formatted(w.format().kernelName(), f32 ? "f32" : "bf16", tile),
        Geometry.of(ceilDiv(w.outputs(), 64), ceilDiv(rows, tile), 1, 128),
        w.codes(),
        w.scales(),
        w.biases(),
        Data.bf16(x),
        out,
        Data.struct(w.columns(), w.groupSize(), w.outputs(), rows));
    return f32 ? Data.readF32(out) : Data.readBf16(out);
  }

  @ParameterizedTest
  @CsvSource({
    "Q4, 64, 70, 1",
    "Q4, 320, 100, 66",
    "Q8, 192, 65, 17",
    "Q8, 96, 1, 64",
    "BF16, 1, 1, 1",
    "BF16, 100, 13, 4",
    "BF16, 130, 70, 20",
    "F32, 13, 64, 7",
    "F32, 1030, 13, 5",
  })
  void multipliesManyRows(Format format, int columns, int outputs, int rows) {
    Data data = new Data(columns * 31L + rows);
    Weights w = Weights.random(data, format, 1, outputs, columns, 32, 0.5);
    float[] x = data.uniformBf16(rows * columns, -2, 2);
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      float[] out = gemm(Tools.kernels().inOrder(order), w, x, rows, 64, true);
      check(w, x, rows, out, format == Format.F32 || format == Format.BF16 ? 1e-5 : Data.BF16);
      assertThat(out).isEqualTo(first == null ? out : first);
      first = out;
    }
    assertThat(gemm(Tools.kernels(), w, x, rows, 16, true)).isEqualTo(first);
    assertThat(gemm(Tools.kernels(), w, x, rows, 32, true)).isEqualTo(first);
    check(w, x, rows, gemm(Tools.kernels(), w, x, rows, 16, false), 2 * Data.BF16);
    check(w, x, rows, gemm(Tools.kernels(), w, x, rows, 64, false), 2 * Data.BF16);
  }

  /** One matrix over some rows by the tensor operations. */
  private static float[] tensor(CpuKernels kernels, Weights w, float[] x, int rows, boolean f32) {
    MemorySegment out =
        f32 ? Data.poisonedF32(rows * w.outputs()) : Data.poisonedBf16(rows * w.outputs());
    kernels.dispatch(
        "gemm_tensor_%s_%s".formatted(w.format().kernelName(), f32 ? "f32" : "bf16"),
        Geometry.of(ceilDiv(w.outputs(), 64), ceilDiv(rows, 64), 1, 128),
        w.codes(),
        w.scales(),
        w.biases(),
        Data.bf16(x),
        out,
        Data.struct(w.columns(), w.groupSize(), w.outputs(), rows));
    return f32 ? Data.readF32(out) : Data.readBf16(out);
  }

  @ParameterizedTest
  @CsvSource({
    "Q4, 64, 70, 1",
    "Q4, 320, 100, 66",
    "Q4, 96, 32, 33",
    "Q8, 192, 65, 17",
    "Q8, 96, 1, 64",
  })
  void multipliesManyRowsByTensorOperations(Format format, int columns, int outputs, int rows) {
    Data data = new Data(columns * 17L + rows);
    Weights w = Weights.random(data, format, 1, outputs, columns, 32, 0.5);
    float[] x = data.uniformBf16(rows * columns, -2, 2);
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      float[] out = tensor(Tools.kernels().inOrder(order), w, x, rows, true);
      check(w, x, rows, out, Data.BF16);
      assertThat(out).isEqualTo(first == null ? out : first);
      first = out;
    }
    check(w, x, rows, tensor(Tools.kernels(), w, x, rows, false), 2 * Data.BF16);
    float[] last = Arrays.copyOfRange(x, (rows - 1) * columns, rows * columns);
    assertThat(tensor(Tools.kernels(), w, last, 1, true))
        .as("the last row alone")
        .isEqualTo(Arrays.copyOfRange(first, (rows - 1) * outputs, rows * outputs));
  }

  @Test
  void givesARowTheSameBitsWhereverItStandsInAPrefill() {
    Data data = new Data(9);
    Weights w = Weights.random(data, Format.Q4, 1, 40, 128);
    float[] x = data.uniformBf16(70 * 128, -2, 2);
    float[] all = gemm(Tools.kernels(), w, x, 70, 64, true);
    float[] tail = Arrays.copyOfRange(x, 59 * 128, 70 * 128);
    assertThat(gemm(Tools.kernels(), w, tail, 11, 16, true))
        .isEqualTo(Arrays.copyOfRange(all, 59 * 40, 70 * 40));
  }
}
