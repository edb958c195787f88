package dev.lily.metal.kernel;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.Matrix;
import dev.lily.metal.device.MetalBuffer;

/**
 * A matrix or a stack of them in device memory.
 *
 * @param groupSize columns of a group; 0 without codes
 * @param stackRows rows from the start of one matrix of a stack to the next
 * @param codes codes, or values where there are none
 * @param scales what {@code codes} is where there are none
 */
public record MetalMatrix(
    String name,
    WeightFormat format,
    int numMatrices,
    int rows,
    int columns,
    int groupSize,
    int stackRows,
    MetalBuffer codes,
    long codesOffset,
    MetalBuffer scales,
    long scalesOffset,
    MetalBuffer biases,
    long biasesOffset)
    implements Matrix {

  /**
   * The implementation of a matrix.
   *
   * @throws BackendException if it is another back end's
   */
  public static MetalMatrix of(Matrix matrix) {
    if (matrix instanceof MetalMatrix metal) {
      return metal;
    }
    throw new BackendException(
        "The Metal back end was given a "
            + matrix.getClass().getName()
            + "; it takes its own only");
  }

  /** Whether one dispatch can take both. */
  boolean isLike(MetalMatrix other) {
    return format == other.format && groupSize == other.groupSize;
  }

  /** Binds codes, scales and biases. */
  void bind(KernelEncoder encoder) {
    encoder
        .constant(codes, codesOffset)
        .constant(scales, scalesOffset)
        .constant(biases, biasesOffset);
  }
}
