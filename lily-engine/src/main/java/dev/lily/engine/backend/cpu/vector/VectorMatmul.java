package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.AffineMatrix;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.DenseMatrix;
import dev.lily.engine.backend.cpu.kernel.MatmulKernels;
import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.RowView;
import java.util.Arrays;

/**
 * Products with lanes over columns, for matrices that are not packed: {@link PackedMatmul} has the
 * others. Every (row, output) has one sum per lane, or for 4-bit codes two, one over even and one
 * over odd columns; lanes are added up at the end in a fixed order. A single row works on packed
 * codes directly; several share a tile of unpacked weights. Both add the same products in the same
 * order.
 */
final class VectorMatmul implements MatmulKernels {
  /** Outputs that are unpacked together: their tile stays in the second-level cache. */
  private static final int TILE_OUTPUTS = 16;

  /** Rows that go over a tile together, which bounds their sums. */
  private static final int PANEL_ROWS = 32;

  /** Steps after which the next rows take their turn, so that weights stay in the first level. */
  private static final int BLOCK_STEPS = 512 / LANES;

  /** Sums of four rows fit 32 vector registers, those of two fit 16. */
  private static final int MICRO_ROWS = LANES == 8 ? 2 : 4;

  private static final int EVEN_ODD = 1;

  private static final int ROW_SUMS = TILE_OUTPUTS * LANES;
  private static final int CHAIN_SUMS = PANEL_ROWS * ROW_SUMS;

  @Override
  public int tileSize(int columns) {
    return Math.max(PackedMatmul.TILE_SIZE, sumsAt(columns) + 2 * CHAIN_SUMS);
  }

  @Override
  public boolean packs() {
    return true;
  }

  // A tile buffer holds weights, then scales and biases (or the last columns of a dense row), then
  // sums.
  private static int groupsAt(int columns) {
    return TILE_OUTPUTS * columns;
  }

  private static int sumsAt(int columns) {
    return groupsAt(columns) + Math.max(TILE_OUTPUTS * LANES, columns);
  }

  @Override
  public int arrangement(CpuMatrix matrix) {
    return switch (matrix) {
      case PackedMatrix packed -> packed.groupSize();
      case AffineMatrix affine when affine.bits() == 4 -> EVEN_ODD;
      case AffineMatrix affine -> AS_IT_IS;
      case DenseMatrix dense -> AS_IT_IS;
    };
  }

  @Override
  public void arrange(
      CpuMatrix matrix,
      float[] row,
      int offset,
      int from,
      int to,
      float[] target,
      int targetOffset) {
    if (matrix instanceof PackedMatrix packed) {
      PackedMatmul.arrange(packed, row, offset, from, to, target, targetOffset);
      return;
    }
    int even = targetOffset + from / 2;
    int odd = even + matrix.columns() / 2;
    for (int c = from; c < to; c += 2) {
      target[even++] = row[offset + c];
      target[odd++] = row[offset + c + 1];
    }
  }

  @Override
  public void multiply(
      CpuMatrix matrix,
      int index,
      int from,
      int to,
      RowView input,
      RowView output,
      int first,
      int count,
      float[] tile) {
    if (matrix instanceof PackedMatrix packed) {
      PackedMatmul.multiply(packed, index, from, to, input, output, first, count, tile);
      return;
    }
    for (int o = from; o < to; o += TILE_OUTPUTS) {
      int outputs = Math.min(TILE_OUTPUTS, to - o);
      if (count == 1 && matrix instanceof AffineMatrix affine && isPacked(affine)) {
        multiplyPacked(affine, index, o, outputs, input, output, first, tile);
      } else {
        unpack(matrix, index, o, outputs, tile);
        for (int r = first; r < first + count; r += PANEL_ROWS) {
          int rows = Math.min(PANEL_ROWS, first + count - r);
          multiplyPanel(matrix, o, outputs, input, output, r, rows, tile);
        }
      }
    }
  }

  private static void multiplyPacked(
      AffineMatrix matrix,
      int index,
      int from,
      int outputs,
      RowView input,
      RowView output,
      int row,
      float[] tile) {
    int columns = matrix.columns();
    int groups = groupsAt(columns);
    int sums = sumsAt(columns);
    int perRow = matrix.groupsPerRow();
    int steps = columns / PackedDot.STEP_COLUMNS;
    int reciprocal = TileUnpacker.reciprocal(matrix.groupSize() / PackedDot.STEP_COLUMNS);
    TileUnpacker.groups(matrix, index, from, outputs, tile, groups);
    int y = output.offset(row) + from;
    for (int o = 0; o < outputs; o += 2) {
      // An odd one out is computed twice.
      int other = Math.min(1, outputs - 1 - o);
      PackedDot.two(
          matrix.codes(),
          matrix.codeOffset(index, from + o),
          (long) other * columns / 2,
          tile,
          groups + o * perRow,
          other * perRow,
          outputs * perRow,
          reciprocal,
          steps,
          input.values(),
          input.offset(row),
          tile,
          sums);
      output.values()[y + o] = Lanes.sum(tile, sums);
      output.values()[y + o + other] = Lanes.sum(tile, sums + LANES);
    }
  }

  /** Whether a single row can work on the codes as they are. */
  private static boolean isPacked(AffineMatrix matrix) {
    return matrix.bits() == 4 && matrix.groupSize() % PackedDot.STEP_COLUMNS == 0;
  }

  private static void unpack(CpuMatrix matrix, int index, int from, int outputs, float[] tile) {
    int columns = matrix.columns();
    int groups = groupsAt(columns);
    if (matrix instanceof AffineMatrix affine) {
      TileUnpacker.groups(affine, index, from, outputs, tile, groups);
    }
    for (int o = 0; o < outputs; o++) {
      int quad = o / MicroKernels.OUTPUTS * MicroKernels.OUTPUTS;
      int at = quad * columns + (o - quad) * LANES;
      int row = from + o;
      switch (matrix) {
        case AffineMatrix affine -> {
          int group = groups + o * affine.groupsPerRow();
          int bias = outputs * affine.groupsPerRow();
          long codes = affine.codeOffset(index, row);
          if (affine.bits() == 4) {
            TileUnpacker.fourBit(affine, codes, tile, group, bias, tile, at);
          } else {
            TileUnpacker.eightBit(affine, codes, tile, group, bias, tile, at);
          }
        }
        case DenseMatrix dense -> {
          TileUnpacker.dense(dense, dense.offset(index, row), tile, at);
          dense.readTail(index, row, columns / LANES * LANES, tile, groups + o * LANES);
        }
        case PackedMatrix packed -> throw new IllegalArgumentException("has kernels of its own");
      }
    }
  }

  private void multiplyPanel(
      CpuMatrix matrix,
      int from,
      int outputs,
      RowView input,
      RowView output,
      int first,
      int rows,
      float[] tile) {
    int columns = matrix.columns();
    int sums = sumsAt(columns);
    int chains = arrangement(matrix) == EVEN_ODD ? 2 : 1;
    int steps = columns / LANES / chains;
    for (int chain = 0; chain < chains; chain++) {
      int chainSums = sums + chain * CHAIN_SUMS;
      Arrays.fill(tile, chainSums, chainSums + rows * ROW_SUMS, 0);
      for (int k = 0; k < steps; k += BLOCK_STEPS) {
        int block = Math.min(BLOCK_STEPS, steps - k);
        multiplyBlock(
            columns, outputs, chain * steps + k, block, input, first, rows, tile, chainSums);
      }
    }
    if (chains == 2) {
      VectorMath.add(tile, sums, sums + CHAIN_SUMS, rows * ROW_SUMS);
    }
    for (int r = 0; r < rows; r++) {
      int y = output.offset(first + r) + from;
      for (int o = 0; o < outputs; o++) {
        int at = sums + r * ROW_SUMS + o * LANES;
        output.values()[y + o] = Lanes.sum(tile, at);
      }
      if (columns % LANES != 0) {
        addTail(columns, outputs, input, first + r, output.values(), y, tile);
      }
    }
  }

  private static void multiplyBlock(
      int columns,
      int outputs,
      int step,
      int steps,
      RowView input,
      int first,
      int rows,
      float[] tile,
      int sums) {
    float[] x = input.values();
    int column = step * LANES;
    for (int quad = 0; quad < outputs; quad += MicroKernels.OUTPUTS) {
      int w = quad * columns + step * MicroKernels.OUTPUTS * LANES;
      for (int r = 0; r < rows; r += MICRO_ROWS) {
        int at = sums + r * ROW_SUMS + quad * LANES;
        int row = first + r;
        int x0 = input.offset(row) + column;
        switch (Math.min(MICRO_ROWS, rows - r)) {
          case 1 -> MicroKernels.rows1(tile, w, steps, x, x0, tile, at);
          case 2 -> {
            int x1 = input.offset(row + 1) + column;
            MicroKernels.rows2(tile, w, steps, x, x0, x1, tile, at, ROW_SUMS);
          }
          case 3 -> {
            int x1 = input.offset(row + 1) + column;
            int x2 = input.offset(row + 2) + column;
            MicroKernels.rows3(tile, w, steps, x, x0, x1, x2, tile, at, ROW_SUMS);
          }
          default -> {
            int x1 = input.offset(row + 1) + column;
            int x2 = input.offset(row + 2) + column;
            int x3 = input.offset(row + 3) + column;
            MicroKernels.rows4(tile, w, steps, x, x0, x1, x2, x3, tile, at, ROW_SUMS);
          }
        }
      }
    }
  }

  /** Adds the columns beyond the last whole vector. */
  private static void addTail(
      int columns, int outputs, RowView input, int row, float[] y, int yOffset, float[] tile) {
    int whole = columns / LANES * LANES;
    int x = input.offset(row) + whole;
    for (int o = 0; o < outputs; o++) {
      int w = groupsAt(columns) + o * LANES;
      float sum = 0;
      for (int c = 0; c < columns - whole; c++) {
        sum = Math.fma(input.values()[x + c], tile[w + c], sum);
      }
      y[yOffset + o] += sum;
    }
  }
}
