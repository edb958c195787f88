package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AttentionKernelCpuRunTest {
  private static final float EPS = 1e-6f;
  private static final double THETA = 10_000_000;

  private static final class Layer {
    final int heads;
    final int kvHeads;
    final int dim;
    final int rotaryDim;
    final int pageTokens;
    final int rows;
    final int start;
    final int maxPages;
    final int pageStride;
    final int layerOffset = 32;
    final float[] queryGate;
    final float[] key;
    final float[] value;
    final float[] queryGain;
    final float[] keyGain;
    CpuKernels kernels = Tools.kernels();

    /** Rows at positions start, start + 1, ...; the prompt before them is a prefix of the data. */
    Layer(int heads, int kvHeads, int dim, int rotaryDim, int pageTokens, int rows, int start) {
      this.heads = heads;
      this.kvHeads = kvHeads;
      this.dim = dim;
      this.rotaryDim = rotaryDim;
      this.pageTokens = pageTokens;
      this.rows = rows;
      this.start = start;
      maxPages = Math.ceilDiv(start + rows, pageTokens);
      pageStride = Math.ceilDiv(2 * kvHeads * pageTokens * dim + layerOffset + 8, 8) * 8;
      Data data = new Data(dim + rows);
      queryGate = data.uniformBf16(rows * heads * 2 * dim, -2, 2);
      key = data.uniformBf16(rows * kvHeads * dim, -2, 2);
      value = data.uniformBf16(rows * kvHeads * dim, -2, 2);
      queryGain = data.uniform(dim, 0.5, 1.5);
      keyGain = data.uniform(dim, 0.5, 1.5);
    }

    MemorySegment pages() {
      return Data.poisonedBf16((maxPages + 1) * pageStride);
    }

    /** Pages in descending order, the last one never used. */
    MemorySegment tables() {
      int[] table = new int[maxPages];
      for (int i = 0; i < maxPages; i++) {
        table[i] = maxPages - 1 - i;
      }
      return Data.ints(table);
    }

    MemorySegment turns() {
      MemorySegment turns = Data.bytes(8L * Math.max(1, rotaryDim / 2));
      for (int j = 0; j < rotaryDim / 2; j++) {
        double perPosition = Math.pow(THETA, -2.0 * j / rotaryDim) / (2 * Math.PI);
        long bits =
            new BigDecimal(perPosition)
                .multiply(new BigDecimal(2).pow(64), MathContext.UNLIMITED)
                .toBigInteger()
                .longValue();
        turns.setAtIndex(ValueLayout.JAVA_LONG, j, bits);
      }
      return turns;
    }

    MemorySegment parameters(int n) {
      return Data.struct(
          heads,
          kvHeads,
          dim,
          rotaryDim,
          pageTokens,
          pageStride,
          layerOffset,
          maxPages,
          n,
          EPS,
          (float) (1 / Math.sqrt(dim)));
    }

    private MemorySegment slice(float[] values, int columns, int from, int to) {
      return Data.bf16(Arrays.copyOfRange(values, from * columns, to * columns));
    }

    private static int[] range(int from, int to) {
      return java.util.stream.IntStream.range(from, to).toArray();
    }

    private MemorySegment prepare(int from, int to, MemorySegment pages) {
      int n = to - from;
      MemorySegment query = Data.poisonedBf16(n * heads * dim);
      kernels.dispatch(
          "attention_prepare",
          Geometry.of(Math.ceilDiv(heads + kvHeads, 8), n, 1, 256),
          slice(queryGate, heads * 2 * dim, from, to),
          slice(key, kvHeads * dim, from, to),
          slice(value, kvHeads * dim, from, to),
          Data.f32(queryGain),
          Data.f32(keyGain),
          turns(),
          Data.ints(range(from, to)),
          Data.ints(new int[n]),
          tables(),
          pages,
          query,
          parameters(n));
      return query;
    }

    float[] prefill(int from, int to, MemorySegment pages) {
      int width = dim <= 64 ? 64 : dim <= 128 ? 128 : 256;
      return prefill("attention_prefill_d" + width, from, to, pages);
    }

    float[] prefill(String kernel, int from, int to, MemorySegment pages) {
      int n = to - from;
      MemorySegment query = prepare(from, to, pages);
      MemorySegment y = Data.poisonedBf16(n * heads * dim);
      kernels.dispatch(
          kernel,
          Geometry.of(Math.ceilDiv(n * heads / kvHeads, 32), kvHeads, 1, 128),
          query,
          slice(queryGate, heads * 2 * dim, from, to),
          Data.ints(0, n, 0, from),
          tables(),
          pages,
          y,
          parameters(n));
      return Data.readBf16(y);
    }

    float[] decode(int row, MemorySegment pages) {
      int blocks = Math.ceilDiv(heads / kvHeads, 8);
      MemorySegment partial = Data.poisonedF32(kvHeads * blocks * 64 * 8 * dim);
      MemorySegment stats = Data.poisonedF32(kvHeads * blocks * 64 * 8 * 2);
      MemorySegment y = Data.poisonedBf16(heads * dim);
      MemorySegment position = Data.ints(row);
      MemorySegment gates = slice(queryGate, heads * 2 * dim, row, row + 1);
      int tiles = Math.ceilDiv(row + 1, 64);
      kernels.dispatch(
          dim == 256 ? "attention_decode_d256" : "attention_decode",
          Geometry.of(Math.min(64, tiles), kvHeads * blocks, 1, 256),
          gates,
          slice(key, kvHeads * dim, row, row + 1),
          slice(value, kvHeads * dim, row, row + 1),
          Data.f32(queryGain),
          Data.f32(keyGain),
          turns(),
          position,
          Data.ints(0),
          tables(),
          pages,
          partial,
          stats,
          parameters(1));
      kernels.dispatch(
          "attention_merge",
          Geometry.of(heads, 1, 1, 256),
          partial,
          stats,
          gates,
          position,
          y,
          parameters(1));
      return Data.readBf16(y);
    }

    float[] plain(int row, MemorySegment pages) {
      MemorySegment query = prepare(row, row + 1, pages);
      MemorySegment y = Data.poisonedBf16(heads * dim);
      kernels.dispatch(
          "attention_plain",
          Geometry.of(heads, 1, 1, 256),
          query,
          slice(queryGate, heads * 2 * dim, row, row + 1),
          Data.ints(row),
          Data.ints(0),
          tables(),
          pages,
          y,
          parameters(1));
      return Data.readBf16(y);
    }

    private double[] normed(float[] x, int from, float[] gain, int position) {
      double squares = 0;
      for (int d = 0; d < dim; d++) {
        squares += (double) x[from + d] * x[from + d];
      }
      double[] n = new double[dim];
      for (int d = 0; d < dim; d++) {
        n[d] = x[from + d] / Math.sqrt(squares / dim + EPS) * gain[d];
      }
      int half = rotaryDim / 2;
      for (int j = 0; j < half; j++) {
        double angle = position * Math.pow(THETA, -2.0 * j / rotaryDim);
        double a = n[j];
        double b = n[j + half];
        n[j] = a * Math.cos(angle) - b * Math.sin(angle);
        n[j + half] = b * Math.cos(angle) + a * Math.sin(angle);
      }
      return n;
    }

    /** A row's result in double precision, with the keys as bf16 keeps them. */
    double[] expected(int row) {
      double[] y = new double[heads * dim];
      for (int h = 0; h < heads; h++) {
        int m = h / (heads / kvHeads);
        double[] q = rounded(normed(queryGate, (row * heads + h) * 2 * dim, queryGain, row));
        double[] p = new double[row + 1];
        double largest = Double.NEGATIVE_INFINITY;
        for (int t = 0; t <= row; t++) {
          double[] k = rounded(normed(key, (t * kvHeads + m) * dim, keyGain, t));
          for (int d = 0; d < dim; d++) {
            p[t] += q[d] * k[d] / Math.sqrt(dim);
          }
          largest = Math.max(largest, p[t]);
        }
        double sum = 0;
        for (int t = 0; t <= row; t++) {
          p[t] = Math.exp(p[t] - largest);
          sum += p[t];
        }
        for (int d = 0; d < dim; d++) {
          double o = 0;
          for (int t = 0; t <= row; t++) {
            o += p[t] / sum * value[(t * kvHeads + m) * dim + d];
          }
          y[h * dim + d] = o / (1 + Math.exp(-queryGate[(row * heads + h) * 2 * dim + dim + d]));
        }
      }
      return y;
    }

    private static double[] rounded(double[] x) {
      for (int i = 0; i < x.length; i++) {
        x[i] = Data.toBf16((float) x[i]);
      }
      return x;
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, 2, 2, 1, 9", "2, 1, 13, 4, 4, 20", "4, 2, 32, 8, 16, 40", "6, 2, 20, 10, 5, 30",
    "8, 1, 64, 16, 32, 20", "16, 2, 256, 64, 32, 18", "3, 3, 48, 48, 7, 19", "20, 1, 72, 72, 8, 17",
  })
  void attendsInEveryShape(
      int heads, int kvHeads, int dim, int rotaryDim, int pageTokens, int rows) {
    Layer layer = new Layer(heads, kvHeads, dim, rotaryDim, pageTokens, rows, 0);
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      layer.kernels = Tools.kernels().inOrder(order);
      MemorySegment pages = layer.pages();
      float[] y = layer.prefill(0, rows, pages);
      for (int r = 0; r < rows; r++) {
        float[] row = Arrays.copyOfRange(y, r * heads * dim, (r + 1) * heads * dim);
        Data.assertClose(row, layer.expected(r), 2 * Data.BF16);
      }
      assertThat(y).isEqualTo(first == null ? y : first);
      first = y;
    }
    MemorySegment pages = layer.pages();
    layer.prefill(0, rows - 1, pages);
    Data.assertClose(layer.plain(rows - 1, pages), layer.expected(rows - 1), 2 * Data.BF16);
    if (dim % 8 == 0 && pageTokens % 8 == 0) {
      MemorySegment again = layer.pages();
      layer.prefill(0, rows - 1, again);
      Data.assertClose(layer.decode(rows - 1, again), layer.expected(rows - 1), 2 * Data.BF16);
      assertThat(again.mismatch(pages)).isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, 64, 16, 32, 1",
    "4, 1, 64, 16, 64, 70",
    "2, 2, 128, 32, 32, 66",
    "16, 2, 256, 64, 32, 18",
  })
  void attendsByTensorOperations(
      int heads, int kvHeads, int dim, int rotaryDim, int pageTokens, int rows) {
    Layer layer = new Layer(heads, kvHeads, dim, rotaryDim, pageTokens, rows, 0);
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      layer.kernels = Tools.kernels().inOrder(order);
      float[] y = layer.prefill("attention_tensor_d" + dim, 0, rows, layer.pages());
      for (int r = 0; r < rows; r++) {
        float[] row = Arrays.copyOfRange(y, r * heads * dim, (r + 1) * heads * dim);
        Data.assertClose(row, layer.expected(r), 3 * Data.BF16);
      }
      assertThat(y).isEqualTo(first == null ? y : first);
      first = y;
    }
  }

  @ParameterizedTest
  @CsvSource({"0", "6", "7", "8", "63", "64", "71", "130", "255"})
  void decodesAtEveryEdgeOfATile(int row) {
    Layer layer = new Layer(4, 2, 16, 8, 16, row + 1, 0);
    MemorySegment pages = layer.pages();
    if (row > 0) {
      layer.prefill(0, row, pages);
    }
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      layer.kernels = Tools.kernels().inOrder(order);
      float[] y = layer.decode(row, pages);
      Data.assertClose(y, layer.expected(row), 2 * Data.BF16);
      assertThat(y).isEqualTo(first == null ? y : first);
      first = y;
    }
  }

  @ParameterizedTest
  @CsvSource({"4095", "4096", "4170", "8200"})
  void decodesOverSplitsOfSeveralTiles(int row) {
    Layer layer = new Layer(2, 1, 8, 4, 32, row + 1, 0);
    MemorySegment pages = layer.pages();
    layer.prepare(0, row, pages);
    float[] y = layer.decode(row, pages);
    Data.assertClose(y, layer.expected(row), 2 * Data.BF16);
    layer.kernels = Tools.kernels().inOrder(CpuKernels.ORDERS[1]);
    assertThat(layer.decode(row, pages)).isEqualTo(y);
  }

  @Test
  void decodesARowAmongOthersAsAlone() {
    Layer layer = new Layer(4, 2, 16, 8, 16, 90, 0);
    int[] positions = {89, 20, 64};
    int pool = layer.maxPages + 1;
    MemorySegment pages = Data.poisonedBf16(3 * pool * layer.pageStride);
    int[] tables = new int[3 * layer.maxPages];
    float[][] alone = new float[3][];
    float[] gates = new float[3 * 4 * 2 * 16];
    float[] keys = new float[3 * 2 * 16];
    float[] values = new float[3 * 2 * 16];
    for (int r = 0; r < 3; r++) {
      int sequence = 2 - r;
      MemorySegment own = layer.pages();
      layer.prepare(0, positions[r], own);
      long bytes = 2L * pool * layer.pageStride;
      MemorySegment.copy(own, 0, pages, sequence * bytes, bytes);
      int[] table = Data.readInts(layer.tables());
      for (int i = 0; i < table.length; i++) {
        tables[sequence * layer.maxPages + i] = sequence * pool + table[i];
      }
      alone[r] = layer.decode(positions[r], own);
      System.arraycopy(layer.queryGate, positions[r] * 128, gates, r * 128, 128);
      System.arraycopy(layer.key, positions[r] * 32, keys, r * 32, 32);
      System.arraycopy(layer.value, positions[r] * 32, values, r * 32, 32);
    }
    MemorySegment partial = Data.poisonedF32(3 * 2 * 64 * 8 * 16);
    MemorySegment stats = Data.poisonedF32(3 * 2 * 64 * 8 * 2);
    MemorySegment y = Data.poisonedBf16(3 * 64);
    MemorySegment rows = Data.ints(positions);
    layer.kernels.dispatch(
        "attention_decode",
        Geometry.of(2, 2, 3, 256),
        Data.bf16(gates),
        Data.bf16(keys),
        Data.bf16(values),
        Data.f32(layer.queryGain),
        Data.f32(layer.keyGain),
        layer.turns(),
        rows,
        Data.ints(2, 1, 0),
        Data.ints(tables),
        pages,
        partial,
        stats,
        layer.parameters(3));
    layer.kernels.dispatch(
        "attention_merge",
        Geometry.of(4, 3, 1, 256),
        partial,
        stats,
        Data.bf16(gates),
        rows,
        y,
        layer.parameters(3));
    float[] together = Data.readBf16(y);
    for (int r = 0; r < 3; r++) {
      assertThat(Arrays.copyOfRange(together, r * 64, (r + 1) * 64)).isEqualTo(alone[r]);
    }
  }

  private static void checkCuts(String kernel, Layer layer, int[]... cutLists) {
    int columns = layer.heads * layer.dim;
    float[] whole = layer.prefill(kernel, 0, layer.rows, layer.pages());
    for (int[] cuts : cutLists) {
      MemorySegment pages = layer.pages();
      int from = 0;
      for (int i = 0; i <= cuts.length; i++) {
        int to = i < cuts.length ? cuts[i] : layer.rows;
        assertThat(layer.prefill(kernel, from, to, pages))
            .isEqualTo(Arrays.copyOfRange(whole, from * columns, to * columns));
        from = to;
      }
    }
  }

  @Test
  void givesTheSameBitsWhereverThePrefillIsCut() {
    int[][] cuts = {{1, 2, 17}, {16, 32}, {44}};
    checkCuts("attention_prefill_d64", new Layer(4, 2, 24, 8, 8, 45, 0), cuts);
    int[][] longer = {{1, 17, 65}, {64}, {69}};
    checkCuts("attention_tensor_d64", new Layer(4, 2, 64, 8, 32, 70, 0), longer);
  }
}
