package dev.lily.engine.backend.cpu.vector;

import static dev.lily.engine.backend.cpu.vector.Lanes.LANES;

import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.RowView;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * Products with a {@link PackedMatrix}, block by block. Lanes are output rows: a vector of words
 * that starts with row {@code lane} gives that many outputs, and as many 16 rows further on.
 *
 * <p>One arithmetic, whatever the number of rows: within a group of columns {@code a = fma(c', x',
 * a)} in ascending order, then {@code y = fma(bias, sum of x, fma(a, scale, y))}. Of every four
 * columns the second and third give codes {@code c'} that are 16 and 256 times too large, since
 * masking costs less than shifting; arranged activations {@code x'} are as much too small, which is
 * exact. The sums of activations follow the columns of an arranged row, one for each group.
 */
final class PackedMatmul {
  /** Bytes before a group's codes. */
  static final int CODES = 2 * PackedMatrix.SCALE_BYTES;

  /** Rows between those in the low and those in the high half of a word. */
  static final int HALF = PackedMatrix.BLOCK_ROWS / 2;

  private static final int ROWS = PackedMatrix.BLOCK_ROWS;
  private static final float[] COLUMN_FACTORS = {1, 1f / 16, 1f / 256, 1};

  /** Rows from which eight, some computed for nothing, cost less than four and the rest apart. */
  private static final int PANEL_FROM = 7;

  /** Rows of activations that share a panel: their sums and a group of them fit the first cache. */
  private static final int PANEL_ROWS = 64;

  private static final int MICRO_ROWS = 4;

  // A tile buffer holds sums, then a panel.
  private static final int PANEL = PANEL_ROWS * ROWS;

  /** Elements of a tile buffer. */
  static final int TILE_SIZE = PANEL + PackedMatrix.MAX_GROUP_SIZE * ROWS;

  private PackedMatmul() {}

  /** Elements of an arranged row. */
  static int arrangedSize(PackedMatrix matrix) {
    return matrix.columns() + matrix.groupsPerRow();
  }

  /** Arranges columns {@code from ≤ c < to}: whole groups. */
  static void arrange(
      PackedMatrix matrix, float[] row, int offset, int from, int to, float[] target, int at) {
    int groupSize = matrix.groupSize();
    for (int c = from; c < to; c += groupSize) {
      float even = 0;
      float odd = 0;
      for (int i = c; i < c + groupSize; i += 4) {
        float x0 = row[offset + i];
        float x1 = row[offset + i + 1];
        float x2 = row[offset + i + 2];
        float x3 = row[offset + i + 3];
        target[at + i] = x0;
        target[at + i + 1] = x1 * COLUMN_FACTORS[1];
        target[at + i + 2] = x2 * COLUMN_FACTORS[2];
        target[at + i + 3] = x3;
        even += x0 + x2;
        odd += x1 + x3;
      }
      target[at + matrix.columns() + c / groupSize] = even + odd;
    }
  }

  /** See {@link VectorMatmul#multiply}; {@code from} is the first row of a block. */
  static void multiply(
      PackedMatrix matrix,
      int index,
      int from,
      int to,
      RowView input,
      RowView output,
      int first,
      int count,
      float[] tile) {
    for (int o = from; o < to; o += ROWS) {
      long block = matrix.blockOffset(index, o / ROWS);
      int outputs = Math.min(ROWS, to - o);
      for (int r = 0; r < count; ) {
        int rows = Math.min(count - r, PANEL_ROWS);
        if (rows < MICRO_ROWS) {
          rows = Math.min(rows, 2);
          Arrays.fill(tile, 0, rows * ROWS, 0);
          few(matrix, block, input, first + r, rows, tile);
        } else {
          rows = rows < PANEL_FROM ? MICRO_ROWS : rows;
          Arrays.fill(tile, 0, ceil(rows) * ROWS, 0);
          panel(matrix, block, input, first + r, rows, tile);
        }
        for (int i = 0; i < rows; i++) {
          int y = output.offset(first + r + i) + o;
          System.arraycopy(tile, i * ROWS, output.values(), y, outputs);
        }
        r += rows;
      }
    }
  }

  private static int ceil(int rows) {
    return (rows + MICRO_ROWS - 1) / MICRO_ROWS * MICRO_ROWS;
  }

  private static void few(
      PackedMatrix matrix, long block, RowView input, int row, int rows, float[] sums) {
    MemorySegment w = matrix.values();
    int groups = matrix.groupsPerRow();
    int size = matrix.groupSize();
    float[] x = input.values();
    int x0 = input.offset(row);
    if (rows == 1) {
      if (LANES == HALF) {
        OneRowKernels.narrow(w, block, groups, size, 0, x, x0, sums, 0);
      } else {
        for (int lane = 0; lane < HALF; lane += 2 * LANES) {
          OneRowKernels.wide(w, block, groups, size, lane, x, x0, sums, 0);
        }
      }
      return;
    }
    int x1 = input.offset(row + 1);
    for (int lane = 0; lane < HALF; lane += LANES) {
      TwoRowsKernels.narrow(w, block, groups, size, lane, x, x0, x1, sums, 0);
    }
  }

  private static void panel(
      PackedMatrix matrix, long block, RowView input, int first, int rows, float[] tile) {
    MemorySegment w = matrix.values();
    int size = matrix.groupSize();
    int last = first + rows - 1;
    for (int g = 0; g < matrix.groupsPerRow(); g++) {
      long group = block + (long) g * matrix.groupBytes();
      int steps = size / PackedMatrix.WORD_COLUMNS;
      for (int lane = 0; lane < HALF; lane += LANES) {
        PanelKernels.unpack(w, group + CODES, steps, lane, tile, PANEL);
      }
      int column = g * size;
      int sum = matrix.columns() + g;
      for (int r = 0; r < rows; r += MICRO_ROWS) {
        // Of fewer than four rows the last one is computed again.
        int x0 = input.offset(first + r);
        int x1 = input.offset(Math.min(last, first + r + 1));
        int x2 = input.offset(Math.min(last, first + r + 2));
        int x3 = input.offset(Math.min(last, first + r + 3));
        for (int lane = 0; lane < HALF; lane += LANES) {
          PanelKernels.four(
              w,
              group,
              size,
              lane,
              tile,
              PANEL,
              input.values(),
              x0,
              x1,
              x2,
              x3,
              column,
              sum,
              tile,
              r * ROWS);
        }
      }
    }
  }
}
