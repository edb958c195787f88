package dev.lily.engine.backend.cpu.vector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.ThreadMXBean;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.cpu.KernelPaths;
import dev.lily.engine.backend.cpu.kernel.AffineMatrix;
import dev.lily.engine.backend.cpu.kernel.BlockPacker;
import dev.lily.engine.backend.cpu.kernel.CpuMatrix;
import dev.lily.engine.backend.cpu.kernel.MatmulKernels;
import dev.lily.engine.backend.cpu.kernel.PackedMatrix;
import dev.lily.engine.backend.cpu.kernel.RowView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PackedMatmulTest {
  private static final int MOST_ROWS = 70;

  @BeforeEach
  void needsTheVectorModule() {
    assumeTrue(KernelPaths.hasVector());
  }

  /** A stack with random codes, and everything a product over it needs. */
  private static final class Case {
    final AffineMatrix source;
    final PackedMatrix packed;
    final MatmulKernels kernels = VectorKernels.create().matmul();
    final float[] x;
    final RowView input = new RowView();
    final RowView output = new RowView();
    final float[] y;
    final float[] tile;

    Case(int matrices, int rows, int columns, int groupSize) {
      Random random = new Random(rows * 31L + columns + groupSize);
      byte[] codes = new byte[matrices * rows * columns / 2];
      random.nextBytes(codes);
      int groups = matrices * rows * columns / groupSize;
      MemorySegment scales = MemorySegment.ofArray(new byte[2 * groups]);
      MemorySegment biases = MemorySegment.ofArray(new byte[2 * groups]);
      for (int g = 0; g < groups; g++) {
        put(scales, g, (random.nextFloat() - 0.5f) / 4);
        put(biases, g, random.nextFloat() - 0.5f);
      }
      source =
          (AffineMatrix)
              CpuMatrix.of(
                  new MatrixSource.Affine(
                      "w",
                      matrices,
                      rows,
                      columns,
                      groupSize,
                      4,
                      MemorySegment.ofArray(codes),
                      scales,
                      biases));
      packed = new PackedMatrix(source, Arena.ofAuto().allocate(PackedMatrix.bytes(source), 64));
      BlockPacker packer = new BlockPacker();
      for (int block = 0; block < packed.numBlocks(); block++) {
        packer.pack(source, packed, block);
      }
      int stride = MatmulKernels.arrangedSize(columns);
      x = new float[MOST_ROWS * stride];
      float[] row = new float[columns];
      int[] index = new int[MOST_ROWS];
      for (int r = 0; r < MOST_ROWS; r++) {
        for (int c = 0; c < columns; c++) {
          row[c] = random.nextFloat() - 0.5f;
        }
        kernels.arrange(packed, row, 0, 0, columns, x, r * stride);
        index[r] = r;
      }
      y = new float[MOST_ROWS * rows];
      tile = new float[kernels.tileSize(columns)];
      input.set(x, stride, index);
      output.set(y, rows, index);
    }

    private static void put(MemorySegment segment, int index, float value) {
      segment.set(
          ValueLayout.JAVA_SHORT_UNALIGNED,
          2L * index,
          (short) (Float.floatToRawIntBits(value) >>> 16));
    }

    float[] multiply(int matrix, int from, int to, int first, int count) {
      Arrays.fill(y, Float.NaN);
      Arrays.fill(tile, Float.NaN);
      kernels.multiply(packed, matrix, from, to, input, output, first, count, tile);
      return y.clone();
    }
  }

  @ParameterizedTest
  @CsvSource({"1, 64, 128, 64", "3, 32, 64, 32", "2, 77, 256, 128", "1, 1, 96, 96"})
  void keepsEveryWeight(int matrices, int rows, int columns, int groupSize) {
    Case c = new Case(matrices, rows, columns, groupSize);
    float[] expected = new float[columns];
    float[] actual = new float[columns];
    for (int m = 0; m < matrices; m++) {
      for (int r = 0; r < rows; r++) {
        c.source.readRow(m, r, expected, 0);
        c.packed.readRow(m, r, actual, 0);
        assertThat(actual).containsExactly(expected);
      }
    }
  }

  @Test
  void takesAsManyBytesAsItsSource() {
    Case c = new Case(2, 64, 128, 64);
    assertThat(PackedMatrix.bytes(c.source))
        .isEqualTo(
            c.source.codes().byteSize()
                + c.source.scales().byteSize()
                + c.source.biases().byteSize());
  }

  @ParameterizedTest
  @CsvSource({"64, 128, 64", "45, 96, 32", "32, 256, 128", "70, 192, 96"})
  void givesEachRowTheSameBitsInAnyCompany(int rows, int columns, int groupSize) {
    Case c = new Case(2, rows, columns, groupSize);
    float[] alone = new float[MOST_ROWS * rows];
    for (int r = 0; r < MOST_ROWS; r++) {
      System.arraycopy(c.multiply(1, 0, rows, r, 1), r * rows, alone, r * rows, rows);
    }
    for (int count : new int[] {2, 3, 4, 5, 6, 7, 8, 9, 63, 64, 65, 70}) {
      float[] together = c.multiply(1, 0, rows, 0, count);
      assertThat(Arrays.copyOf(together, count * rows))
          .containsExactly(Arrays.copyOf(alone, count * rows));
    }
  }

  @Test
  void sumsWhatTheWeightsSay() {
    Case c = new Case(1, 40, 256, 64);
    float[] y = c.multiply(0, 0, 40, 3, 1);
    float[] w = new float[256];
    float[] factors = {1, 16, 256, 1};
    for (int o = 0; o < 40; o++) {
      c.source.readRow(0, o, w, 0);
      double sum = 0;
      for (int i = 0; i < 256; i++) {
        sum += (double) w[i] * c.x[3 * MatmulKernels.arrangedSize(256) + i] * factors[i % 4];
      }
      assertThat((double) y[3 * 40 + o]).isCloseTo(sum, within(1e-4));
    }
  }

  @Test
  void writesNothingBesideTheOutputsAskedFor() {
    Case c = new Case(1, 96, 64, 64);
    float[] y = c.multiply(0, 32, 50, 2, 3);
    for (int r = 0; r < MOST_ROWS; r++) {
      for (int o = 0; o < 96; o++) {
        boolean asked = r >= 2 && r < 5 && o >= 32 && o < 50;
        assertThat(Float.isNaN(y[r * 96 + o])).isEqualTo(!asked);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4, 64})
  void allocatesNothing(int count) {
    ThreadMXBean threads = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);
    long self = Thread.currentThread().threadId();
    Case c = new Case(1, 128, 512, 64);
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 400 && least > 0; round++) {
      long before = threads.getThreadAllocatedBytes(self);
      for (int call = 0; call < 20; call++) {
        c.kernels.multiply(c.packed, 0, 0, 128, c.input, c.output, 0, count, c.tile);
      }
      least = Math.min(least, threads.getThreadAllocatedBytes(self) - before);
    }
    assertThat(least).isZero();
  }
}
