package dev.lily.metal.msl;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** The 35B's products. */
final class MatmulProof {
  private static final float EPS = 1e-6f;
  private static final int MOST_OUTPUTS = 512; // checked for each row
  private static final int MOST_ROWS = 24; // checked for each output

  private final Proof proof;
  private final int hidden;
  private final int vocabulary;

  MatmulProof(Proof proof) {
    this.proof = proof;
    hidden = proof.pick(192, 2048, 2048);
    vocabulary = proof.pick(70, 2050, 248_320);
  }

  void run() {
    int shrink = proof.pick(64, 8, 1);
    int[] linear = {8192 / shrink, 4096 / shrink, 32, 32};
    int[] full = {8192 / shrink, 512 / shrink, 512 / shrink};
    int wide = proof.pick(256, 4096, 4096);
    normMatvec("norm_matvec_q4_bf16_o4", 4, linear);
    normMatvec("norm_matvec_q4_bf16_o4", 4, full);
    normMatvec("norm_matvec_q4_bf16_o2", 4, 2048 / shrink);
    normMatvec("norm_matvec_q4_f32_o4", 4, vocabulary);
    normMatvec("norm_matvec_q8_f32_o1", 8, 256 / Math.min(4, shrink), 1);
    matvec(4, false, 2, 1, wide, 1, 2048 / shrink);
    matvec(4, false, 4, 1, hidden, 1, linear);
    matvec(4, false, 1, 1, hidden, 1, 512 / shrink);
    matvec(4, true, 4, 1, hidden, 1, vocabulary);
    matvec(8, true, 1, 1, hidden, 1, 256 / Math.min(4, shrink), 1);
    int[][] batches = {{4, 2, 2}, {2, 4, 4}, {2, 8, 16}};
    for (int[] batch : batches) {
      matvec(4, false, batch[0], batch[1], hidden, batch[2], linear);
      matvec(4, false, batch[0], batch[1], wide, batch[2] - 1, 2048 / shrink);
      matvec(4, true, batch[0], batch[1], hidden, batch[2], vocabulary);
      matvec(8, true, batch[0], batch[1], hidden, batch[2], 256 / Math.min(4, shrink), 1);
    }
    gemm(4, true, "m16", hidden, proof.pick(3, 16, 16), vocabulary);
    gemm(4, true, "tensor", hidden, proof.pick(3, 16, 16), vocabulary);
    for (String tile : new String[] {"m16", "m32", "tensor"}) {
      gemm(4, false, tile, hidden, proof.pick(3, 31, 31), 8192 / shrink);
      gemm(8, true, tile, hidden, proof.pick(17, 32, 32), 256 / Math.min(4, shrink));
    }
    for (int rows : rowsOfPasses()) {
      for (String tile : new String[] {"m64", "tensor"}) {
        gemm(4, false, tile, hidden, rows, 8192 / shrink);
        gemm(4, false, tile, hidden, rows, 4096 / shrink);
        gemm(4, false, tile, hidden, rows, 512 / shrink);
        gemm(4, false, tile, hidden, rows, 32);
        gemm(4, false, tile, wide, rows, 2048 / shrink);
        gemm(8, true, tile, hidden, rows, 256 / Math.min(4, shrink));
        gemm(8, true, tile, hidden, rows, 1);
      }
    }
  }

  private int[] rowsOfPasses() {
    return switch (proof.scale()) {
      case SMOKE -> new int[] {70};
      case SANITIZER -> new int[] {96};
      case REAL -> new int[] {512, 2048};
    };
  }

  /** The weights of up to four matrices, and what stands for those that are absent. */
  private List<MemorySegment> bind(List<AffineMatrix> matrices) {
    List<MemorySegment> buffers = new ArrayList<>();
    for (AffineMatrix w : matrices) {
      buffers.addAll(List.of(w.codes(), w.scales(), w.biases()));
    }
    while (buffers.size() < 12) {
      buffers.add(Data.unused());
    }
    return buffers;
  }

  private List<MemorySegment> outputs(int rows, boolean f32, int[] outputs) {
    List<MemorySegment> out = new ArrayList<>();
    for (int count : outputs) {
      out.add(Data.poisoned((f32 ? 4L : 2L) * rows * count));
    }
    while (out.size() < 4) {
      out.add(Data.unused());
    }
    return out;
  }

  private MemorySegment parameters(int columns, int[] outputs, int rows, int hasBranch) {
    int[] four = Arrays.copyOf(outputs, 4);
    return Data.struct(
        columns, AffineMatrix.GROUP, four[0], four[1], four[2], four[3], rows, hasBranch, EPS);
  }

  private static int groups(int[] outputs, int perGroup) {
    return Arrays.stream(outputs).map(count -> Math.ceilDiv(count, perGroup)).sum();
  }

  private static String shape(int rows, int[] outputs, int columns) {
    String all = String.join("+", Arrays.stream(outputs).mapToObj(Integer::toString).toList());
    return rows + " x " + all + " x " + columns;
  }

  private void normMatvec(String kernel, int bits, int... outputs) {
    float[] x = proof.uniform(hidden, -3, 3);
    float[] branch = proof.uniformBf16(hidden, -2, 2);
    float[] gain = proof.uniform(hidden, 0.5, 1.5);
    boolean f32 = kernel.contains("_f32_");
    List<AffineMatrix> matrices =
        Arrays.stream(outputs)
            .mapToObj(count -> AffineMatrix.random(proof, bits, count, hidden))
            .toList();
    MemorySegment sum = Data.poisonedF32(hidden);
    MemorySegment n = Data.poisonedBf16(hidden);
    List<MemorySegment> out = outputs(1, f32, outputs);
    List<MemorySegment> buffers = bind(matrices);
    buffers.add(Data.f32(x));
    buffers.addAll(out);
    buffers.add(parameters(hidden, outputs, 1, 1));
    buffers.addAll(List.of(Data.bf16(branch), Data.f32(gain), sum, n));
    int perGroup = 8 * (kernel.charAt(kernel.length() - 1) - '0');
    proof.dispatch(
        kernel, Geometry.of(groups(outputs, perGroup), 256), buffers.toArray(MemorySegment[]::new));
    double squares = 0;
    double[] expected = new double[hidden];
    for (int c = 0; c < hidden; c++) {
      expected[c] = x[c] + branch[c];
      squares += expected[c] * expected[c];
    }
    proof.check(kernel, "x_out", Data.readF32(sum), expected.clone(), Proof.FP32);
    for (int c = 0; c < hidden; c++) {
      expected[c] *= gain[c] / Math.sqrt(squares / hidden + EPS);
    }
    proof.check(kernel, "n", Data.readBf16(n), expected, Proof.BF16);
    checkProducts(kernel, matrices, Data.readBf16(n), 1, f32, out, f32 ? Proof.FP32 : Proof.BF16);
  }

  private void matvec(int bits, boolean f32, int o, int r, int columns, int rows, int... outputs) {
    String kernel = "matvec_q%d_%s_o%d_r%d".formatted(bits, f32 ? "f32" : "bf16", o, r);
    float[] x = proof.uniformBf16(rows * columns, -2, 2);
    List<AffineMatrix> matrices =
        Arrays.stream(outputs)
            .mapToObj(count -> AffineMatrix.random(proof, bits, count, columns))
            .toList();
    List<MemorySegment> out = outputs(rows, f32, outputs);
    List<MemorySegment> buffers = bind(matrices);
    buffers.add(Data.bf16(x));
    buffers.addAll(out);
    buffers.add(parameters(columns, outputs, rows, 0));
    proof.dispatch(
        kernel,
        Geometry.of(groups(outputs, 8 * o), Math.ceilDiv(rows, r), 1, 256),
        buffers.toArray(MemorySegment[]::new));
    checkProducts(kernel, matrices, x, rows, f32, out, f32 ? Proof.FP32 : Proof.BF16);
  }

  private void gemm(int bits, boolean f32, String tile, int columns, int rows, int outputs) {
    boolean isTensor = tile.equals("tensor");
    String format = "q%d_%s".formatted(bits, f32 ? "f32" : "bf16");
    String kernel = isTensor ? "gemm_tensor_" + format : "gemm_" + format + "_" + tile;
    int tileRows = isTensor ? 64 : Integer.parseInt(tile.substring(1));
    float[] x = proof.uniformBf16(rows * columns, -2, 2);
    AffineMatrix w = AffineMatrix.random(proof, bits, outputs, columns);
    MemorySegment out = Data.poisoned((f32 ? 4L : 2L) * rows * outputs);
    proof.dispatch(
        kernel,
        Geometry.of(Math.ceilDiv(outputs, 64), Math.ceilDiv(rows, tileRows), 1, 128),
        w.codes(),
        w.scales(),
        w.biases(),
        Data.bf16(x),
        out,
        Data.struct(columns, AffineMatrix.GROUP, outputs, rows));
    checkProducts(
        kernel,
        List.of(w),
        x,
        rows,
        f32,
        List.of(out),
        f32 ? Proof.BF16_WEIGHTS : Proof.BF16_TWICE);
  }

  /** All rows for some outputs, and all outputs for some rows. */
  private void checkProducts(
      String kernel,
      List<AffineMatrix> matrices,
      float[] x,
      int rows,
      boolean f32,
      List<MemorySegment> out,
      double limit) {
    List<float[]> actual = new ArrayList<>();
    List<double[]> expected = new ArrayList<>();
    for (int m = 0; m < matrices.size(); m++) {
      AffineMatrix w = matrices.get(m);
      int outputs = Math.toIntExact(w.outputs());
      float[] all = f32 ? Data.readF32(out.get(m)) : Data.readBf16(out.get(m));
      proof.checkWritten(kernel, all);
      int[] everyRow = IntStream.range(0, rows).toArray();
      int[] everyOutput = IntStream.range(0, outputs).toArray();
      int[] someOutputs = proof.sample(outputs, MOST_OUTPUTS);
      add(w, x, everyRow, someOutputs, all, actual, expected);
      if (someOutputs.length < outputs) {
        int most = outputs > 100_000 ? 2 : MOST_ROWS;
        add(w, x, proof.sample(rows, most), everyOutput, all, actual, expected);
      }
    }
    int[] counts = matrices.stream().mapToInt(w -> Math.toIntExact(w.outputs())).toArray();
    proof.check(
        kernel,
        shape(rows, counts, matrices.getFirst().columns()),
        concatenated(actual),
        expected.stream().flatMapToDouble(Arrays::stream).toArray(),
        limit);
  }

  private static void add(
      AffineMatrix w,
      float[] x,
      int[] rows,
      int[] wanted,
      float[] all,
      List<float[]> actual,
      List<double[]> expected) {
    float[] values = new float[rows.length * wanted.length];
    int outputs = Math.toIntExact(w.outputs());
    for (int r = 0; r < rows.length; r++) {
      for (int o = 0; o < wanted.length; o++) {
        values[r * wanted.length + o] = all[rows[r] * outputs + wanted[o]];
      }
    }
    actual.add(values);
    expected.add(w.multiply(x, rows, 0, wanted));
  }

  private static float[] concatenated(List<float[]> parts) {
    float[] all = new float[parts.stream().mapToInt(part -> part.length).sum()];
    int at = 0;
    for (float[] part : parts) {
      System.arraycopy(part, 0, all, at, part.length);
      at += part.length;
    }
    return all;
  }
}
