package dev.lily.metal.kernel;

import dev.lily.metal.kernel.MatmulRoute.Gemm;
import dev.lily.metal.kernel.MatmulRoute.Matvec;
import dev.lily.metal.kernel.MatmulRoute.NormMatvec;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;

/** Matrices times rows. */
public final class MatmulKernels {
  /** Matrices over one input that a decode dispatch takes. */
  private static final int MAX_MATRICES = 4;

  private static final int SIMDGROUPS = 8;
  private static final int MATVEC_THREADS = 256;
  private static final int GEMM_THREADS = 128;

  private final KernelEncoder encoder;
  private final boolean hasTensorOperations;
  private final Map<WeightFormat, Products> narrow;
  private final Map<WeightFormat, Products> wide;
  private final Pipelines<NormMatvec> normMatvec;

  /** The kernels of one format of weights and one type of results. */
  private record Products(Pipelines<Matvec> matvec, Pipelines<Gemm> gemm) {}

  public MatmulKernels(KernelLibrary library, KernelEncoder encoder) {
    this.encoder = encoder;
    hasTensorOperations = library.hasTensorOperations();
    narrow = products(library, ElementType.BF16);
    wide = products(library, ElementType.F32);
    normMatvec = Pipelines.of(library, NormMatvec.class, kind -> true, NormMatvec::kernel);
  }

  private static Map<WeightFormat, Products> products(KernelLibrary library, ElementType out) {
    Map<WeightFormat, Products> products = new EnumMap<>(WeightFormat.class);
    for (WeightFormat format : WeightFormat.values()) {
      products.put(
          format,
          new Products(
              Pipelines.of(
                  library,
                  Matvec.class,
                  kind -> kind.exists(format),
                  kind -> kind.kernel(format, out)),
              Pipelines.of(
                  library,
                  Gemm.class,
                  kind -> kind.exists(format, library.hasTensorOperations()),
                  kind -> kind.kernel(format, out))));
    }
    return products;
  }

  private Products products(WeightFormat format, ElementType out) {
    return Objects.requireNonNull((out == ElementType.BF16 ? narrow : wide).get(format));
  }

  /**
   * {@code outs[m] = matrices[m] · x} for the first {@code count} matrices: prefill rows first,
   * then decode rows, each on its path.
   *
   * @param x bf16 {@code [rows, columns]}
   * @param outputs rows of each matrix that are wanted: the width of its output
   */
  public void multiply(
      int prefillRows,
      int decodeRows,
      Region x,
      MetalMatrix[] matrices,
      Region[] outs,
      int[] outputs,
      int count,
      ElementType type) {
    for (int m = 0; m < count && prefillRows > 0; m++) {
      prefill(prefillRows, x, matrices[m], outs[m], outputs[m], type);
    }
    for (int first = 0; first < count && decodeRows > 0; ) {
      int end = first + 1;
      while (end < count && end - first < MAX_MATRICES && matrices[end].isLike(matrices[first])) {
        end++;
      }
      decode(prefillRows, decodeRows, x, matrices, outs, outputs, first, end, type);
      first = end;
    }
  }

  private void prefill(
      int rows, Region x, MetalMatrix matrix, Region out, int outputs, ElementType type) {
    Gemm kind = MatmulRoute.gemm(matrix.format(), rows, hasTensorOperations);
    encoder.kernel(products(matrix.format(), type).gemm.get(kind), RowPart.PREFILL);
    matrix.bind(encoder);
    encoder
        .read(x)
        .write(out)
        .field(matrix.columns())
        .field(matrix.groupSize())
        .field(outputs)
        .field(rows)
        .parameters()
        .dispatch(
            KernelEncoder.ceilDiv(outputs, MatmulRoute.TILE_OUTPUTS),
            KernelEncoder.ceilDiv(rows, kind.rows()),
            1,
            GEMM_THREADS);
  }

  private void decode(
      int firstRow,
      int rows,
      Region x,
      MetalMatrix[] matrices,
      Region[] outs,
      int[] outputs,
      int first,
      int end,
      ElementType type) {
    MetalMatrix matrix = matrices[first];
    int total = 0;
    for (int m = first; m < end; m++) {
      total += outputs[m];
    }
    Matvec kind = MatmulRoute.matvec(matrix.format(), rows, total);
    encoder.kernel(products(matrix.format(), type).matvec.get(kind), RowPart.DECODE);
    int groups = bindMatrices(matrices, outputs, first, end, kind.outputs());
    encoder.read(x, (long) firstRow * matrix.columns() * ElementType.BF16.bytes());
    bindOutputs(outs, outputs, first, end, firstRow, type);
    shapes(matrix, outputs, first, end);
    encoder
        .field(rows)
        .field(0)
        .field(0f)
        .parameters()
        .dispatch(groups, KernelEncoder.ceilDiv(rows, kind.rows()), 1, MATVEC_THREADS);
  }

  /** Binds four matrices, absent ones to anything; gives the threadgroups they take. */
  private int bindMatrices(
      MetalMatrix[] matrices, int[] outputs, int first, int end, int outputsOfSimdgroup) {
    int groups = 0;
    for (int m = first; m < first + MAX_MATRICES; m++) {
      matrices[m < end ? m : first].bind(encoder);
      groups += m < end ? KernelEncoder.ceilDiv(outputs[m], SIMDGROUPS * outputsOfSimdgroup) : 0;
    }
    return groups;
  }

  private void bindOutputs(
      Region[] outs, int[] outputs, int first, int end, int firstRow, ElementType type) {
    for (int m = first; m < first + MAX_MATRICES; m++) {
      if (m < end) {
        encoder.write(outs[m], (long) firstRow * outputs[m] * type.bytes());
      } else {
        encoder.constant(outs[first].buffer(), 0);
      }
    }
  }

  private void shapes(MetalMatrix matrix, int[] outputs, int first, int end) {
    encoder.field(matrix.columns()).field(matrix.groupSize());
    for (int m = first; m < first + MAX_MATRICES; m++) {
      encoder.field(m < end ? outputs[m] : 0);
    }
  }

  /**
   * As {@link #multiply} for one decode row, with the norm that gives the input in the same
   * dispatch, to the same bits.
   *
   * @return false, and nothing is recorded, if no kernel does both
   */
  public boolean multiplyNormed(
      DeferredNorm norm,
      MetalMatrix[] matrices,
      Region[] outs,
      int[] outputs,
      int count,
      ElementType type) {
    MetalMatrix matrix = matrices[0];
    int total = 0;
    for (int m = 0; m < count; m++) {
      if (!matrices[m].isLike(matrix)) {
        return false;
      }
      total += outputs[m];
    }
    NormMatvec kind = MatmulRoute.normMatvec(matrix.format(), type, norm.columns(), total);
    if (kind == null || count > MAX_MATRICES) {
      return false;
    }
    encoder.kernel(normMatvec.get(kind));
    int groups = bindMatrices(matrices, outputs, 0, count, kind.outputs());
    encoder.read(norm.x().current());
    bindOutputs(outs, outputs, 0, count, 0, type);
    shapes(matrix, outputs, 0, count);
    Region branch = norm.branch();
    encoder.field(1).field(branch == null ? 0 : 1).field(norm.eps()).parameters();
    if (branch == null) {
      encoder.constant(norm.gain().buffer(), 0);
    } else {
      encoder.read(branch);
    }
    encoder
        .constant(norm.gain().buffer(), 0)
        .write(norm.x().spare())
        .write(norm.n())
        .dispatch(KernelEncoder.ceilDiv(groups, kind.blocks()), 1, 1, MATVEC_THREADS);
    norm.x().takeSpare();
    norm.clear();
    return true;
  }
}
