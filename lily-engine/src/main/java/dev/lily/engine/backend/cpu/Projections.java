package dev.lily.engine.backend.cpu;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.RowView;
import dev.lily.engine.backend.cpu.kernel.WorkerPool;
import java.util.Arrays;

/** Matrices over one input: {@link #input}, then {@link #add} for each, then {@link #run}. */
final class Projections implements WorkerPool.Task {
  private static final int OUTPUT_UNIT = PackedMatrix.BLOCK_ROWS;

  private final Compute compute;
  private final RowArrangement arrangement;
  private final float[][] tiles;
  private final int[] identity;
  private Product[] products = new Product[0];
  private int numProducts;
  private int rows;
  private int columns;

  Projections(Compute compute) {
    this.compute = compute;
    arrangement = new RowArrangement(compute);
    tiles = new float[compute.pool().numWorkers()][];
    for (int w = 0; w < tiles.length; w++) {
      tiles[w] = Compute.scratch(compute.kernels().matmul().tileSize(compute.maxColumns()));
    }
    identity = new int[compute.maxRows()];
    Arrays.setAll(identity, i -> i);
  }

  /** A tile buffer that belongs to a worker. */
  float[] tile(int worker) {
    return tiles[worker];
  }

  /** {@code 0, 1, 2, …}: rows in their own order. */
  int[] identity() {
    return identity;
  }

  /** Shows the current input as a matrix expects it, in an order of rows. */
  void showInput(CpuMatrix matrix, RowView view, int[] index) {
    arrangement.show(matrix, view, index);
  }

  void input(float[] x, int rows, int columns) {
    if (columns > compute.maxColumns() || rows > compute.maxRows()) {
      throw new BackendException(
          "A product over [%d, %d] exceeds the scratch for [%d, %d]; the state was opened for smaller passes"
              .formatted(rows, columns, compute.maxRows(), compute.maxColumns()));
    }
    arrangement.input(x, rows, columns);
    this.rows = rows;
    this.columns = columns;
    numProducts = 0;
  }

  /**
   * @param outputs how many of the matrix's rows to compute
   * @param out {@code [rows, outStride]}
   */
  void add(CpuMatrix matrix, int outputs, float[] out, int outStride) {
    if (matrix.columns() != columns || outputs > matrix.rows()) {
      throw new BackendException(
          "A matrix [%d, %d] cannot give %d outputs of rows of %d columns"
              .formatted(matrix.rows(), matrix.columns(), outputs, columns));
    }
    if (numProducts == products.length) {
      products = Arrays.copyOf(products, numProducts + 1);
      products[numProducts] = new Product();
    }
    Product product = products[numProducts];
    product.matrix = matrix;
    product.outputs = outputs;
    arrangement.show(matrix, product.input, identity);
    product.output.set(out, outStride, identity);
    product.firstPart = numProducts == 0 ? 0 : products[numProducts - 1].endPart(outputsPerPart());
    numProducts++;
  }

  private int outputsPerPart() {
    return Compute.outputsPerPart(columns, rows, OUTPUT_UNIT);
  }

  void run() {
    compute.pool().run(this, products[numProducts - 1].endPart(outputsPerPart()));
  }

  @Override
  public void run(int part, int worker) {
    int p = numProducts - 1;
    while (products[p].firstPart > part) {
      p--;
    }
    Product product = products[p];
    int size = outputsPerPart();
    int from = (part - product.firstPart) * size;
    compute
        .kernels()
        .matmul()
        .multiply(
            product.matrix,
            0,
            from,
            Math.min(product.outputs, from + size),
            product.input,
            product.output,
            0,
            rows,
            tiles[worker]);
  }

  private static final class Product {
    private CpuMatrix matrix = CpuMatrix.NONE;
    private int outputs;
    private int firstPart;
    private final RowView input = new RowView();
    private final RowView output = new RowView();

    int endPart(int outputsPerPart) {
      return firstPart + Compute.ceilDiv(outputs, outputsPerPart);
    }
  }
}
