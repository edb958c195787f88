package dev.lily.metal.msl;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.stream.IntStream;

/**
 * A random quantized matrix, or a stack of them, of any size: its values are made from the codes
 * when a reference asks for them.
 *
 * @param outputs rows of all matrices together
 */
record AffineMatrix(
    int bits,
    long outputs,
    int columns,
    MemorySegment codes,
    MemorySegment scales,
    MemorySegment biases) {
  static final int GROUP = 64;

  static AffineMatrix random(Proof proof, int bits, long outputs, int columns) {
    long elements = outputs * columns;
    MemorySegment codes = Data.bytes(elements * bits / 8);
    for (long i = 0; i < codes.byteSize() / 8; i++) {
      codes.setAtIndex(ValueLayout.JAVA_LONG, i, proof.bits());
    }
    int groups = Math.toIntExact(elements / GROUP);
    double step = 0.1 / (1 << bits);
    float[] scales = proof.uniformBf16(groups, step / 2, step);
    float[] biases = proof.uniform(groups, -0.01, 0.01);
    for (int g = 0; g < groups; g++) {
      scales[g] = (proof.bits() & 1) == 0 ? scales[g] : -scales[g];
      biases[g] -= scales[g] * (1 << bits) / 2;
    }
    return new AffineMatrix(bits, outputs, columns, codes, Data.bf16(scales), Data.bf16(biases));
  }

  private static double bf16(MemorySegment segment, long index) {
    return Float.intBitsToFloat(segment.getAtIndex(ValueLayout.JAVA_SHORT, index) << 16);
  }

  double[] row(long output) {
    double[] row = new double[columns];
    int perByte = 8 / bits;
    for (int c = 0; c < columns; c++) {
      long at = output * columns + c;
      int code =
          codes.get(ValueLayout.JAVA_BYTE, at / perByte) >> (int) (at % perByte) * bits
              & (1 << bits) - 1;
      row[c] = bf16(scales, at / GROUP) * code + bf16(biases, at / GROUP);
    }
    return row;
  }

  /**
   * Products of some rows of {@code x [.., columns]} with some outputs: {@code [rows, outputs]}.
   */
  double[] multiply(float[] x, int[] rows, long base, int[] wanted) {
    double[] out = new double[rows.length * wanted.length];
    IntStream.range(0, wanted.length)
        .parallel()
        .forEach(
            o -> {
              double[] weights = row(base + wanted[o]);
              for (int r = 0; r < rows.length; r++) {
                out[r * wanted.length + o] = dot(weights, x, rows[r] * columns);
              }
            });
    return out;
  }

  private static double dot(double[] weights, float[] x, int from) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int i = 0;
    for (; i + 3 < weights.length; i += 4) {
      a += weights[i] * x[from + i];
      b += weights[i + 1] * x[from + i + 1];
      c += weights[i + 2] * x[from + i + 2];
      d += weights[i + 3] * x[from + i + 3];
    }
    for (; i < weights.length; i++) {
      a += weights[i] * x[from + i];
    }
    return a + b + (c + d);
  }
}
