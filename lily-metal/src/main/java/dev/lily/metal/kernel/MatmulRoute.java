package dev.lily.metal.kernel;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Which kernel multiplies: pure functions of the shape, and of whether the device multiplies by
 * tensor operations. On one device all kernels of a path give a row the same bits.
 */
final class MatmulRoute {
  /** Outputs from which a simdgroup of a decode product makes several. */
  static final int OUTPUTS_FOR_TWO = 1024;

  static final int OUTPUTS_FOR_FOUR = 4096;

  /** Most columns of a product that norms its input itself. */
  static final int MAX_FUSED_COLUMNS = 4096;

  /** Outputs of a tile of the prefill products. */
  static final int TILE_OUTPUTS = 64;

  static final List<String> NAMES = names();

  /** Of the kernels of {@code matmul_tensor.metal}. */
  static final List<String> TENSOR_NAMES = tensorNames();

  /** A decode product: outputs of a simdgroup, rows of a threadgroup. */
  enum Matvec {
    O1_R1(1, 1),
    O2_R1(2, 1),
    O4_R1(4, 1),
    O4_R2(4, 2),
    O2_R4(2, 4),
    O2_R8(2, 8);

    private final int outputs;
    private final int rows;

    Matvec(int outputs, int rows) {
      this.outputs = outputs;
      this.rows = rows;
    }

    int outputs() {
      return outputs;
    }

    int rows() {
      return rows;
    }

    boolean exists(WeightFormat format) {
      return format.isAffine() || this == O1_R1 || this == O2_R8;
    }

    String kernel(WeightFormat format, ElementType out) {
      return "matvec_%s_%s_o%d_r%d".formatted(format.kernelName(), out.kernelName(), outputs, rows);
    }
  }

  /** A prefill product: rows of a tile. */
  enum Gemm {
    M16(16),
    M32(32),
    M64(64),
    /** Tensor operations: for rows of any number, since their bits differ from the others'. */
    TENSOR(64);

    private final int rows;

    Gemm(int rows) {
      this.rows = rows;
    }

    int rows() {
      return rows;
    }

    boolean exists(WeightFormat format, boolean hasTensorOperations) {
      return this != TENSOR || (hasTensorOperations && format.isAffine());
    }

    String kernel(WeightFormat format, ElementType out) {
      return this == TENSOR
          ? "gemm_tensor_%s_%s".formatted(format.kernelName(), out.kernelName())
          : "gemm_%s_%s_m%d".formatted(format.kernelName(), out.kernelName(), rows);
    }
  }

  /**
   * A decode product of one row that norms its input itself: outputs of a simdgroup, and how often
   * a threadgroup makes them.
   */
  enum NormMatvec {
    Q4_BF16_O4("q4_bf16_o4", 4, 1),
    Q4_BF16_O2("q4_bf16_o2", 2, 1),
    Q4_F32_O4("q4_f32_o4", 4, 4),
    Q8_F32_O1("q8_f32_o1", 1, 1);

    private final String suffix;
    private final int outputs;
    private final int blocks;

    NormMatvec(String suffix, int outputs, int blocks) {
      this.suffix = suffix;
      this.outputs = outputs;
      this.blocks = blocks;
    }

    int blocks() {
      return blocks;
    }

    int outputs() {
      return outputs;
    }

    String kernel() {
      return "norm_matvec_" + suffix;
    }
  }

  /** The decode product that norms its input itself; null if none does for this shape. */
  static @Nullable NormMatvec normMatvec(
      WeightFormat format, ElementType out, int columns, int outputs) {
    if (columns > MAX_FUSED_COLUMNS) {
      return null;
    }
    return switch (format) {
      case Q4 ->
          out == ElementType.F32
              ? NormMatvec.Q4_F32_O4
              : outputs >= OUTPUTS_FOR_FOUR ? NormMatvec.Q4_BF16_O4 : NormMatvec.Q4_BF16_O2;
      case Q8 -> out == ElementType.F32 ? NormMatvec.Q8_F32_O1 : null;
      case BF16, F32 -> null;
    };
  }

  private MatmulRoute() {}

  /**
   * The decode product.
   *
   * @param outputs of all matrices of the dispatch together
   */
  static Matvec matvec(WeightFormat format, int rows, int outputs) {
    if (!format.isAffine()) {
      return rows == 1 ? Matvec.O1_R1 : Matvec.O2_R8;
    }
    return switch (rows) {
      case 1 ->
          outputs >= OUTPUTS_FOR_FOUR
              ? Matvec.O4_R1
              : outputs >= OUTPUTS_FOR_TWO ? Matvec.O2_R1 : Matvec.O1_R1;
      case 2 -> Matvec.O4_R2;
      case 3, 4 -> Matvec.O2_R4;
      default -> Matvec.O2_R8;
    };
  }

  /** The prefill product. */
  static Gemm gemm(WeightFormat format, int rows, boolean hasTensorOperations) {
    if (Gemm.TENSOR.exists(format, hasTensorOperations)) {
      return Gemm.TENSOR;
    }
    return rows <= Gemm.M16.rows ? Gemm.M16 : rows <= Gemm.M32.rows ? Gemm.M32 : Gemm.M64;
  }

  private static List<String> names() {
    List<String> names = new ArrayList<>();
    for (WeightFormat format : WeightFormat.values()) {
      for (ElementType out : ElementType.values()) {
        for (Matvec matvec : Matvec.values()) {
          if (matvec.exists(format)) {
            names.add(matvec.kernel(format, out));
          }
        }
        for (Gemm gemm : Gemm.values()) {
          if (gemm.exists(format, false)) {
            names.add(gemm.kernel(format, out));
          }
        }
      }
    }
    for (NormMatvec matvec : NormMatvec.values()) {
      names.add(matvec.kernel());
    }
    return List.copyOf(names);
  }

  private static List<String> tensorNames() {
    List<String> names = new ArrayList<>();
    for (WeightFormat format : WeightFormat.values()) {
      for (ElementType out : ElementType.values()) {
        if (Gemm.TENSOR.exists(format, true)) {
          names.add(Gemm.TENSOR.kernel(format, out));
        }
      }
    }
    return List.copyOf(names);
  }
}
