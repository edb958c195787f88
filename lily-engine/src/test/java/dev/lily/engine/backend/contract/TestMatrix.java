package dev.lily.engine.backend.contract;

import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.MatrixSource;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * A matrix or a stack as a back end gets it and as the numbers it stands for.
 *
 * @param values {@code [numMatrices, rows, columns]}
 */
record TestMatrix(MatrixSource source, double[] values) {
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** The formats of a checkpoint. */
  enum Format {
    AFFINE_4,
    AFFINE_8,
    BF16,
    F32
  }

  static TestMatrix random(
      Values random, Format format, int numMatrices, int rows, int columns, double scale) {
    int count = numMatrices * rows * columns;
    return switch (format) {
      case AFFINE_4 -> affine(random, numMatrices, rows, columns, 64, 4, scale);
      case AFFINE_8 -> affine(random, numMatrices, rows, columns, 64, 8, scale);
      case BF16 ->
          dense(random.uniform(count, -scale, scale), numMatrices, rows, columns, DType.BF16, 0);
      case F32 ->
          dense(random.uniform(count, -scale, scale), numMatrices, rows, columns, DType.F32, 0);
    };
  }

  /** Codes of every value, scales of both signs; the values span about twice {@code scale}. */
  static TestMatrix affine(
      Values random,
      int numMatrices,
      int rows,
      int columns,
      int groupSize,
      int bits,
      double scale) {
    int count = numMatrices * rows * columns;
    int levels = 1 << bits;
    MemorySegment codes = unaligned((long) count * bits / 8);
    MemorySegment scales = unaligned(2L * count / groupSize);
    MemorySegment biases = unaligned(2L * count / groupSize);
    double[] values = new double[count];
    for (int g = 0; g < count / groupSize; g++) {
      float s = random.uniform(0.5, 1) * Values.bf16(2 * scale / levels);
      s = Values.bf16(random.below(2) == 0 ? s : -s);
      float b = Values.bf16(random.uniform(-0.1, 0.1) * scale - s * levels / 2);
      put(scales, g, s);
      put(biases, g, b);
      for (int i = g * groupSize; i < (g + 1) * groupSize; i++) {
        int code = random.below(levels);
        long at = (long) i * bits / 8;
        byte old = codes.get(ValueLayout.JAVA_BYTE, at);
        codes.set(ValueLayout.JAVA_BYTE, at, (byte) (old | code << i * bits % 8));
        values[i] = (double) s * code + b;
      }
    }
    return new TestMatrix(
        new MatrixSource.Affine(
            "affine", numMatrices, rows, columns, groupSize, bits, codes, scales, biases),
        values);
  }

  /**
   * @param gapRows rows of NaN between two matrices of the stack
   */
  static TestMatrix dense(
      float[] values, int numMatrices, int rows, int columns, DType dtype, int gapRows) {
    long stride = (long) (rows + gapRows) * columns * dtype.bytes();
    MemorySegment segment = unaligned(numMatrices * stride);
    double[] exact = new double[values.length];
    for (int m = 0; m < numMatrices; m++) {
      for (int i = 0; i < (rows + gapRows) * columns; i++) {
        int element = (int) (m * stride / dtype.bytes()) + i;
        float value = Float.NaN;
        if (i < rows * columns) {
          value = values[m * rows * columns + i];
          exact[m * rows * columns + i] = value;
        }
        if (dtype == DType.BF16) {
          put(segment, element, value);
        } else {
          segment.set(FLOAT, (long) element * Float.BYTES, value);
        }
      }
    }
    return new TestMatrix(
        new MatrixSource.Dense("dense", numMatrices, rows, columns, dtype, stride, segment), exact);
  }

  /** fp32 rows to be read by {@code embed}: the way into a tensor. */
  static TestMatrix rows(float[] values, int columns) {
    return dense(values, 1, values.length / columns, columns, DType.F32, 0);
  }

  // Checkpoints do not align tensors.
  private static MemorySegment unaligned(long bytes) {
    return Arena.ofAuto().allocate(bytes + 1, 64).asSlice(1);
  }

  private static void put(MemorySegment segment, int index, float bf16) {
    segment.set(SHORT, 2L * index, (short) (Float.floatToRawIntBits(bf16) >>> 16));
  }

  int rows() {
    return source.rows();
  }

  int columns() {
    return source.columns();
  }

  /** {@code matrix · x}. */
  double[] multiply(int matrix, double[] x) {
    double[] out = new double[rows()];
    for (int o = 0; o < rows(); o++) {
      for (int c = 0; c < columns(); c++) {
        out[o] += values[(matrix * rows() + o) * columns() + c] * x[c];
      }
    }
    return out;
  }

  /** {@code Σ |matrix · x|}: how large the terms of each output are, for tolerances. */
  double[] magnitude(int matrix, double[] x) {
    double[] out = new double[rows()];
    for (int o = 0; o < rows(); o++) {
      for (int c = 0; c < columns(); c++) {
        out[o] += Math.abs(values[(matrix * rows() + o) * columns() + c] * x[c]);
      }
    }
    return out;
  }

  /** The root of {@code Σ (matrix · x)²} over the terms of each output. */
  double[] rootOfSquares(double[] x) {
    double[] out = new double[rows()];
    for (int o = 0; o < rows(); o++) {
      for (int c = 0; c < columns(); c++) {
        double term = values[o * columns() + c] * x[c];
        out[o] += term * term;
      }
      out[o] = Math.sqrt(out[o]);
    }
    return out;
  }
}
