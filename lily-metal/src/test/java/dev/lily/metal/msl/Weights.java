package dev.lily.metal.msl;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;

/**
 * A matrix, or a stack of them one after the other, as a kernel gets it and as the numbers it
 * stands for.
 *
 * @param values {@code [matrices, outputs, columns]}
 */
record Weights(
    Format format,
    int outputs,
    int columns,
    int groupSize,
    MemorySegment codes,
    MemorySegment scales,
    MemorySegment biases,
    double[] values) {

  /** Format, as it is numbered and spelt in the kernels. */
  enum Format {
    Q4,
    Q8,
    BF16,
    F32;

    String kernelName() {
      return name().toLowerCase(Locale.ROOT);
    }

    boolean isQuantized() {
      return this == Q4 || this == Q8;
    }
  }

  static Weights random(Data data, Format format, int matrices, int outputs, int columns) {
    return random(data, format, matrices, outputs, columns, 64, 0.5);
  }

  static Weights random(
      Data data,
      Format format,
      int matrices,
      int outputs,
      int columns,
      int groupSize,
      double scale) {
    int count = matrices * outputs * columns;
    double[] values = new double[count];
    if (!format.isQuantized()) {
      float[] floats =
          format == Format.F32
              ? data.uniform(count, -scale, scale)
              : data.uniformBf16(count, -scale, scale);
      for (int i = 0; i < count; i++) {
        values[i] = floats[i];
      }
      MemorySegment codes = format == Format.F32 ? Data.f32(floats) : Data.bf16(floats);
      return new Weights(
          format, outputs, columns, groupSize, codes, Data.unused(), Data.unused(), values);
    }
    int bits = format == Format.Q4 ? 4 : 8;
    int levels = 1 << bits;
    byte[] codes = new byte[count * bits / 8];
    float[] scales = new float[count / groupSize];
    float[] biases = new float[scales.length];
    for (int g = 0; g < scales.length; g++) {
      float size = data.uniform(1, 0.5, 1)[0] * (float) (2 * scale / levels);
      scales[g] = Data.toBf16(data.below(2) == 0 ? size : -size);
      biases[g] = Data.toBf16(data.uniform(1, -0.1, 0.1)[0] - scales[g] * levels / 2);
      for (int i = g * groupSize; i < (g + 1) * groupSize; i++) {
        int code = data.below(levels);
        codes[i * bits / 8] |= (byte) (code << i * bits % 8);
        values[i] = (double) scales[g] * code + biases[g];
      }
    }
    MemorySegment packed = Data.bytes(codes.length);
    MemorySegment.copy(codes, 0, packed, ValueLayout.JAVA_BYTE, 0, codes.length);
    return new Weights(
        format, outputs, columns, groupSize, packed, Data.bf16(scales), Data.bf16(biases), values);
  }

  /** {@code matrix · x}, and in the second half the sums of the terms' sizes. */
  double[][] multiply(int matrix, float[] x, int offset) {
    double[] out = new double[outputs];
    double[] magnitude = new double[outputs];
    for (int o = 0; o < outputs; o++) {
      for (int c = 0; c < columns; c++) {
        double term = values[(matrix * outputs + o) * columns + c] * x[offset + c];
        out[o] += term;
        magnitude[o] += Math.abs(term);
      }
    }
    return new double[][] {out, magnitude};
  }

  double[] multiply(int matrix, double[] x) {
    double[] out = new double[outputs];
    for (int o = 0; o < outputs; o++) {
      for (int c = 0; c < columns; c++) {
        out[o] += values[(matrix * outputs + o) * columns + c] * x[c];
      }
    }
    return out;
  }
}
