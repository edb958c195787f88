package dev.lily.engine.backend;

import java.lang.foreign.MemorySegment;

/**
 * Where the bytes of a matrix, or of a stack of equally shaped matrices, lie. The segments are
 * slices of mapped checkpoint files and outlive the back end; a back end may keep, repack or copy
 * them. All values are little-endian and possibly unaligned.
 */
public sealed interface MatrixSource {
  /** Name for messages: the tensor's name in the checkpoint. */
  String name();

  /** Matrices in the stack; 1 for a plain matrix. */
  int numMatrices();

  /** Output features of each matrix. */
  int rows();

  /** Input features of each matrix. */
  int columns();

  /** Bytes the source occupies in the checkpoint. */
  long bytes();

  /**
   * MLX affine quantisation: {@code value = scale * code + bias} per group of {@code groupSize}
   * consecutive columns.
   *
   * @param codes unsigned codes, lowest bits first in little-endian 32-bit words, {@code
   *     [numMatrices, rows, columns * bits / 32]}
   * @param scales bf16 {@code [numMatrices, rows, columns / groupSize]}; may be negative
   * @param biases bf16, shaped as the scales
   * @param bits 4 or 8
   */
  record Affine(
      String name,
      int numMatrices,
      int rows,
      int columns,
      int groupSize,
      int bits,
      MemorySegment codes,
      MemorySegment scales,
      MemorySegment biases)
      implements MatrixSource {
    public Affine {
      long elements = (long) numMatrices * rows * columns;
      if (columns % groupSize != 0
          || codes.byteSize() != elements * bits / 8
          || scales.byteSize() != elements / groupSize * 2
          || biases.byteSize() != scales.byteSize()) {
        throw new BackendException(
            "Matrix '%s' [%d, %d, %d] in %d-bit groups of %d does not match its %d code, %d scale and %d bias bytes"
                .formatted(
                    name,
                    numMatrices,
                    rows,
                    columns,
                    bits,
                    groupSize,
                    codes.byteSize(),
                    scales.byteSize(),
                    biases.byteSize()));
      }
    }

    @Override
    public long bytes() {
      return codes.byteSize() + scales.byteSize() + biases.byteSize();
    }
  }

  /**
   * Unquantised values.
   *
   * @param values row-major; matrix {@code m} starts at {@code m * strideBytes}
   * @param strideBytes distance between matrices; larger than a matrix where several are
   *     interleaved in one tensor (fused gate and up projections)
   */
  record Dense(
      String name,
      int numMatrices,
      int rows,
      int columns,
      DType dtype,
      long strideBytes,
      MemorySegment values)
      implements MatrixSource {
    public Dense {
      long matrixBytes = (long) rows * columns * dtype.bytes();
      if (strideBytes < matrixBytes
          || values.byteSize() < (numMatrices - 1) * strideBytes + matrixBytes) {
        throw new BackendException(
            "Matrix '%s' [%d, %d, %d] of %s with stride %d needs more than its %d bytes"
                .formatted(
                    name, numMatrices, rows, columns, dtype, strideBytes, values.byteSize()));
      }
    }

    @Override
    public long bytes() {
      return (long) numMatrices * rows * columns * dtype.bytes();
    }
  }
}
