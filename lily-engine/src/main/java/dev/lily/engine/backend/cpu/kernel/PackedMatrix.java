package dev.lily.engine.backend.cpu.kernel;

import dev.lily.engine.backend.BackendException;
import java.lang.foreign.MemorySegment;

/**
 * 4-bit codes of an affine matrix in blocks of {@value #BLOCK_ROWS} rows, so that lanes can be
 * output rows: no sum runs across lanes, and one scale serves a whole group.
 *
 * <pre>
 * stack   = matrices                      matrix = blocks of 32 rows, the last one padded with zeros
 * block   = groups of columns             group  = 32 scales, 32 biases (bf16), then its codes
 * codes   = for every 4 columns 16 little-endian 32-bit words; word i holds in its low half the
 *           codes of row i, in its high half those of row i + 16, the first column lowest
 * </pre>
 *
 * As many bytes as the source has, one stream for a block, and the same on every machine: the
 * segment can be native memory or a mapped file.
 */
public final class PackedMatrix extends CpuMatrix {
  /** Rows of a block. */
  public static final int BLOCK_ROWS = 32;

  /** Columns that one word holds of a row. */
  public static final int WORD_COLUMNS = 4;

  /** Bytes of the words of {@value #WORD_COLUMNS} columns. */
  public static final int STEP_BYTES = BLOCK_ROWS * Short.BYTES;

  /** Bytes of a group's scales, and of its biases. */
  public static final int SCALE_BYTES = BLOCK_ROWS * Short.BYTES;

  /** The largest group that kernels have scratch for. */
  public static final int MAX_GROUP_SIZE = 128;

  private static final int HALF_ROWS = BLOCK_ROWS / 2;

  private final MemorySegment values;
  private final int groupSize;

  /**
   * A matrix of a shape in memory.
   *
   * @param shape a matrix of the same shape that {@link #suits}
   * @param values {@link #bytes} of that shape, filled by {@link BlockPacker} or by an earlier
   *     process
   */
  public PackedMatrix(AffineMatrix shape, MemorySegment values) {
    super(shape);
    if (!suits(shape) || values.byteSize() != bytes(shape)) {
      throw new BackendException(
          "A matrix [%d, %d, %d] in %d-bit groups of %d cannot be packed into %d bytes"
              .formatted(
                  shape.numMatrices(),
                  shape.rows(),
                  shape.columns(),
                  shape.bits(),
                  shape.groupSize(),
                  values.byteSize()));
    }
    this.values = values;
    groupSize = shape.groupSize();
  }

  /** Whether there is such a layout for a matrix. */
  public static boolean suits(AffineMatrix matrix) {
    return matrix.bits() == 4 && matrix.groupSize() <= MAX_GROUP_SIZE;
  }

  /** Bytes that a matrix takes when packed. */
  public static long bytes(AffineMatrix matrix) {
    long groupBytes = 2L * SCALE_BYTES + codeBytes(matrix.groupSize());
    return (long) matrix.numMatrices()
        * numBlocks(matrix.rows())
        * matrix.groupsPerRow()
        * groupBytes;
  }

  private static int codeBytes(int columns) {
    return columns / WORD_COLUMNS * STEP_BYTES;
  }

  private static int numBlocks(int rows) {
    return (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
  }

  public MemorySegment values() {
    return values;
  }

  /** Columns that share a scale and a bias; a multiple of 32. */
  public int groupSize() {
    return groupSize;
  }

  public int groupsPerRow() {
    return columns() / groupSize;
  }

  /** Blocks of all matrices of the stack. */
  public int numBlocks() {
    return numMatrices() * numBlocks(rows());
  }

  /** Bytes of one group of a block. */
  public int groupBytes() {
    return 2 * SCALE_BYTES + codeBytes(groupSize);
  }

  /**
   * Byte offset of a block.
   *
   * @param block of the matrix, not of the stack
   */
  public long blockOffset(int matrix, int block) {
    long blocks = (long) matrix * numBlocks(rows()) + block;
    return blocks * groupsPerRow() * groupBytes();
  }

  @Override
  public void readRow(int matrix, int row, float[] target, int offset) {
    int r = row % BLOCK_ROWS;
    long at = blockOffset(matrix, row / BLOCK_ROWS);
    long word = 2 * SCALE_BYTES + (long) (r % HALF_ROWS) * Integer.BYTES + r / HALF_ROWS * 2L;
    int i = offset;
    for (int g = 0; g < groupsPerRow(); g++, at += groupBytes()) {
      float scale = bf16(values, at + (long) r * Short.BYTES);
      float bias = bf16(values, at + SCALE_BYTES + (long) r * Short.BYTES);
      long codes = at + word;
      for (int c = 0; c < groupSize; c += WORD_COLUMNS, codes += STEP_BYTES) {
        int four = values.get(SHORT, codes);
        for (int j = 0; j < WORD_COLUMNS; j++, four >>= 4) {
          target[i++] = Math.fma(scale, (float) (four & 15), bias);
        }
      }
    }
  }
}
