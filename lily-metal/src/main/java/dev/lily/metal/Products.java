package dev.lily.metal;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.Tensor;
import dev.lily.metal.kernel.DeferredNorm;
import dev.lily.metal.kernel.ElementType;
import dev.lily.metal.kernel.MetalKernels;
import dev.lily.metal.kernel.MetalMatrix;
import dev.lily.metal.kernel.MetalTensor;
import dev.lily.metal.kernel.Region;
import org.jspecify.annotations.Nullable;

/**
 * Matrices over one input, multiplied together, and the norm of a single decode row that waits to
 * become part of such products. Reused from verb to verb.
 */
final class Products {
  private static final int MAX = 16;

  private final MetalKernels kernels;
  private final MetalMatrix[] matrices = new MetalMatrix[MAX];
  private final Region[] outs = new Region[MAX];
  private final int[] outputs = new int[MAX];
  private final DeferredNorm norm = new DeferredNorm();
  private int count;

  Products(MetalKernels kernels) {
    this.kernels = kernels;
  }

  /** Forgets the matrices, and the norm, of a pass before. */
  void reset() {
    begin();
    norm.clear();
  }

  /** Begins another input. */
  void begin() {
    count = 0;
  }

  /**
   * Adds a matrix.
   *
   * @param columns of the output: the matrix may have more rows
   * @param input whose columns the matrix must have
   */
  void add(Matrix matrix, Region out, int columns, Tensor input) {
    if (count == MAX) {
      throw new BackendException("More than " + MAX + " matrices over one input");
    }
    MetalMatrix metal = MetalMatrix.of(matrix);
    if (metal.columns() != input.columns() || metal.rows() < columns) {
      throw new BackendException(
          "Matrix '%s' is [%d, %d]; it is applied to %d columns and gives %d"
              .formatted(metal.name(), metal.rows(), metal.columns(), input.columns(), columns));
    }
    matrices[count] = metal;
    outs[count] = out;
    outputs[count++] = columns;
  }

  /** Operations for so many rows. */
  double work(int rows) {
    double work = 0;
    for (int m = 0; m < count; m++) {
      work += Work.product(rows, outputs[m], matrices[m].columns());
    }
    return work;
  }

  /** Lets the norm of a single decode row wait for the products of its result. */
  void defer(MetalTensor x, @Nullable Region branch, Region gain, float eps, Region n) {
    norm.defer(x, branch, gain, eps, n);
  }

  /** Records a norm that waits for products that do not come next. */
  void flush() {
    if (norm.isPending()) {
      norm.record(kernels.norm());
    }
  }

  /** Records the products, with the norm that gives their input if a kernel does both. */
  void multiply(int prefillRows, int decodeRows, Region input, ElementType type) {
    if (norm.gives(input)
        && kernels.matmul().multiplyNormed(norm, matrices, outs, outputs, count, type)) {
      return;
    }
    flush();
    kernels.matmul().multiply(prefillRows, decodeRows, input, matrices, outs, outputs, count, type);
  }
}
