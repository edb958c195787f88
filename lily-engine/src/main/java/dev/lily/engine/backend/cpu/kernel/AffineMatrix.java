package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.MatrixSource;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Unsigned 4-bit or 8-bit codes with a bf16 scale and bias for each group of columns. */
public final class AffineMatrix extends CpuMatrix {
  /** Groups are whole multiples of this many columns, so that no vector spans two of them. */
  static final int GROUP_UNIT = 32;

  private final MemorySegment codes;
  private final MemorySegment scales;
  private final MemorySegment biases;
  private final int bits;
  private final int groupSize;

  AffineMatrix(MatrixSource.Affine source) {
    super(source);
    if (source.bits() != 4 && source.bits() != 8) {
      throw new BackendException(
          "Matrix '%s' has %d-bit codes; the CPU back end computes with 4 or 8 bits"
              .formatted(source.name(), source.bits()));
    }
    if (source.groupSize() % GROUP_UNIT != 0) {
      throw new BackendException(
          "Matrix '%s' has groups of %d columns; the CPU back end needs a multiple of %d"
              .formatted(source.name(), source.groupSize(), GROUP_UNIT));
    }
    codes = source.codes();
    scales = source.scales();
    biases = source.biases();
    bits = source.bits();
    groupSize = source.groupSize();
  }

  public MemorySegment codes() {
    return codes;
  }

  /** bf16, one per group; a row's groups are contiguous. */
  public MemorySegment scales() {
    return scales;
  }

  /** bf16, laid out as the scales. */
  public MemorySegment biases() {
    return biases;
  }

  public int bits() {
    return bits;
  }

  /** Columns that share a scale and a bias; a multiple of 32. */
  public int groupSize() {
    return groupSize;
  }

  public int groupsPerRow() {
    return columns() / groupSize;
  }

  /** Byte offset of a row's codes. */
  public long codeOffset(int matrix, int row) {
    return ((long) matrix * rows() + row) * columns() * bits / 8;
  }

  /** Byte offset of a row's scales and of its biases. */
  public long groupOffset(int matrix, int row) {
    return ((long) matrix * rows() + row) * groupsPerRow() * Short.BYTES;
  }

  @Override
  public void readRow(int matrix, int row, float[] target, int offset) {
    long code = codeOffset(matrix, row);
    long group = groupOffset(matrix, row);
    for (int c = 0; c < columns(); c += groupSize, group += Short.BYTES) {
      float scale = bf16(scales, group);
      float bias = bf16(biases, group);
      int end = offset + c + groupSize;
      if (bits == 4) {
        for (int i = offset + c; i < end; i += 2, code++) {
          int pair = codes.get(ValueLayout.JAVA_BYTE, code) & 0xff;
          target[i] = Math.fma(scale, (float) (pair & 15), bias);
          target[i + 1] = Math.fma(scale, (float) (pair >> 4), bias);
        }
      } else {
        for (int i = offset + c; i < end; i++, code++) {
          target[i] =
              Math.fma(scale, (float) (codes.get(ValueLayout.JAVA_BYTE, code) & 0xff), bias);
        }
      }
    }
  }
}
