package dev.lily.engine.backend.cpu.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Fills blocks of packed matrices. Holds the scratch of one thread. */
public final class BlockPacker {
  private static final int ROWS = PackedMatrix.BLOCK_ROWS;
  private static final int HALF_ROWS = ROWS / 2;

  /** Steps whose words stay in the first-level cache until all rows have filled them. */
  private static final int CHUNK_STEPS = 64;

  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  // Four columns of a row in each.
  private short[] codes = {};
  private int[] words = {};
  private final short[] scales = new short[2 * ROWS];

  /**
   * Fills one block.
   *
   * @param source the matrix that the target was made for
   * @param block of the stack, below {@link PackedMatrix#numBlocks}
   */
  public void pack(AffineMatrix source, PackedMatrix target, int block) {
    int blocks = target.numBlocks() / target.numMatrices();
    int matrix = block / blocks;
    int first = block % blocks * ROWS;
    int count = Math.min(ROWS, target.rows() - first);
    readCodes(source, matrix, first, count);
    int steps = target.columns() / PackedMatrix.WORD_COLUMNS;
    transpose(codes, steps, words);
    int groupWords = target.groupSize() / PackedMatrix.WORD_COLUMNS * HALF_ROWS;
    long at = target.blockOffset(matrix, block % blocks);
    for (int g = 0; g < target.groupsPerRow(); g++, at += target.groupBytes()) {
      readScales(source, matrix, first, count, g);
      MemorySegment.copy(scales, 0, target.values(), CpuMatrix.SHORT, at, scales.length);
      long to = at + (long) scales.length * Short.BYTES;
      MemorySegment.copy(words, g * groupWords, target.values(), INT, to, groupWords);
    }
  }

  private void readCodes(AffineMatrix source, int matrix, int first, int count) {
    int steps = source.columns() / PackedMatrix.WORD_COLUMNS;
    if (codes.length < steps * ROWS) {
      codes = new short[steps * ROWS];
      words = new int[steps * HALF_ROWS];
    }
    MemorySegment.copy(
        source.codes(), CpuMatrix.SHORT, source.codeOffset(matrix, first), codes, 0, count * steps);
    Arrays.fill(codes, count * steps, steps * ROWS, (short) 0);
  }

  private static void transpose(short[] codes, int steps, int[] words) {
    for (int k = 0; k < steps; k += CHUNK_STEPS) {
      int end = Math.min(steps, k + CHUNK_STEPS);
      for (int i = 0; i < HALF_ROWS; i++) {
        transpose(codes, i * steps, (i + HALF_ROWS) * steps, k, end, words, i);
      }
    }
  }

  private static void transpose(
      short[] codes, int low, int high, int from, int to, int[] words, int i) {
    for (int k = from; k < to; k++) {
      words[k * HALF_ROWS + i] = (codes[low + k] & 0xffff) | (codes[high + k] << 16);
    }
  }

  private void readScales(AffineMatrix source, int matrix, int first, int count, int group) {
    Arrays.fill(scales, (short) 0);
    for (int r = 0; r < count; r++) {
      long from = source.groupOffset(matrix, first + r) + (long) group * Short.BYTES;
      scales[r] = source.scales().get(CpuMatrix.SHORT, from);
      scales[ROWS + r] = source.biases().get(CpuMatrix.SHORT, from);
    }
  }
}
