package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DeltaRuleKernelCpuRunTest {
  private static final float EPS = 1e-6f;
  private static final int SLOTS = 3;

  /** One layer's random inputs for some rows, and what comes of them. */
  private static final class Layer {
    final int keyHeads;
    final int valueHeads;
    final int keyDim;
    final int valueDim;
    final int kernel;
    final int rows;
    final int channels;
    final int width;
    final float[] qkv;
    final float[] z;
    final float[] a;
    final float[] b;
    final float[] conv;
    final float[] aLog;
    final float[] dtBias;
    final float[] gain;
    CpuKernels kernels = Tools.kernels();

    Layer(int keyHeads, int valueHeads, int keyDim, int valueDim, int kernel, int rows) {
      this.keyHeads = keyHeads;
      this.valueHeads = valueHeads;
      this.keyDim = keyDim;
      this.valueDim = valueDim;
      this.kernel = kernel;
      this.rows = rows;
      channels = 2 * keyHeads * keyDim + valueHeads * valueDim;
      width = 2 * keyDim + valueDim;
      Data data = new Data(keyDim * 7L + valueDim);
      qkv = data.uniformBf16(rows * channels, -2, 2);
      z = data.uniformBf16(rows * valueHeads * valueDim, -3, 3);
      a = data.uniformBf16(rows * valueHeads, -4, 4);
      b = data.uniformBf16(rows * valueHeads, -4, 4);
      conv = data.uniform(channels * kernel, -0.7, 0.7);
      aLog = data.uniform(valueHeads, -1, 1);
      dtBias = data.uniform(valueHeads, -1, 1);
      gain = data.uniform(valueDim, 0.5, 1.5);
    }

    int windowElements() {
      return valueHeads * (kernel - 1) * width;
    }

    int stateElements() {
      return valueHeads * keyDim * valueDim;
    }

    MemorySegment parameters() {
      return Data.struct(
          keyHeads, valueHeads, keyDim, valueDim, kernel, windowElements(), stateElements(), EPS);
    }

    /** Slot 1 is empty; the others are poisoned. */
    MemorySegment window() {
      MemorySegment window = Data.poisonedBf16(SLOTS * windowElements());
      window.asSlice(2L * windowElements(), 2L * windowElements()).fill((byte) 0);
      return window;
    }

    MemorySegment state() {
      MemorySegment state = Data.poisonedF32(SLOTS * stateElements());
      state.asSlice(4L * stateElements(), 4L * stateElements()).fill((byte) 0);
      return state;
    }

    private int valueColumns() {
      return valueHeads * valueDim;
    }

    /** Rows [from, to) in one pass of the prefill kernels. */
    float[] prefill(int from, int to, MemorySegment window, MemorySegment state) {
      int n = to - from;
      MemorySegment sequences = Data.ints(0, n, 1, from);
      MemorySegment sequenceOf = Data.ints(new int[n]);
      MemorySegment mixed = Data.poisonedF32(n * channels);
      MemorySegment gates = Data.poisonedF32(n * valueHeads * 2);
      MemorySegment outputs = Data.poisonedF32(n * valueColumns());
      MemorySegment y = Data.poisonedBf16(n * valueColumns());
      MemorySegment input = rows(qkv, channels, from, to);
      String scan = keyDim <= 128 ? "delta_scan_k128" : "delta_scan_k256";
      kernels.dispatch(
          "delta_mix",
          Geometry.of(Math.ceilDiv(2 * keyHeads + valueHeads, 8), n, 1, 256),
          input,
          rows(a, valueHeads, from, to),
          rows(b, valueHeads, from, to),
          Data.f32(conv),
          Data.f32(aLog),
          Data.f32(dtBias),
          sequences,
          sequenceOf,
          window,
          mixed,
          gates,
          parameters());
      kernels.dispatch(
          scan,
          Geometry.of(Math.ceilDiv(valueDim, 16), valueHeads, 1, 128),
          mixed,
          gates,
          sequences,
          state,
          outputs,
          parameters());
      kernels.dispatch(
          "delta_norm",
          Geometry.of(Math.ceilDiv(valueHeads, 8), n, 1, 256),
          outputs,
          rows(z, valueColumns(), from, to),
          Data.f32(gain),
          input,
          sequences,
          sequenceOf,
          window,
          y,
          parameters());
      return Data.readBf16(y);
    }

    /** One row by the decode kernel. */
    float[] step(int row, MemorySegment window, MemorySegment state) {
      MemorySegment y = Data.poisonedBf16(valueColumns());
      kernels.dispatch(
          keyDim <= 128 ? "delta_step_k128" : "delta_step_k256",
          Geometry.of(valueHeads, 1, 1, 512),
          rows(qkv, channels, row, row + 1),
          rows(z, valueColumns(), row, row + 1),
          rows(a, valueHeads, row, row + 1),
          rows(b, valueHeads, row, row + 1),
          Data.f32(conv),
          Data.f32(aLog),
          Data.f32(dtBias),
          Data.f32(gain),
          Data.ints(0, 1, 1, row),
          window,
          state,
          y,
          parameters());
      return Data.readBf16(y);
    }

    private static MemorySegment rows(float[] values, int columns, int from, int to) {
      return Data.bf16(Arrays.copyOfRange(values, from * columns, to * columns));
    }

    double[] expected() {
      double[] y = new double[rows * valueColumns()];
      double[][][] state = new double[valueHeads][keyDim][valueDim];
      for (int t = 0; t < rows; t++) {
        double[] c = new double[channels];
        for (int ch = 0; ch < channels; ch++) {
          for (int tap = 0; tap < kernel; tap++) {
            int from = t - (kernel - 1) + tap;
            c[ch] += from < 0 ? 0 : (double) conv[ch * kernel + tap] * qkv[from * channels + ch];
          }
          c[ch] /= 1 + Math.exp(-c[ch]);
        }
        for (int h = 0; h < valueHeads; h++) {
          head(c, state[h], t, h, y);
        }
      }
      return y;
    }

    private void head(double[] c, double[][] s, int t, int h, double[] y) {
      int keyHead = h / (valueHeads / keyHeads);
      double[] q = Arrays.copyOfRange(c, keyHead * keyDim, (keyHead + 1) * keyDim);
      int k0 = (keyHeads + keyHead) * keyDim;
      double[] k = Arrays.copyOfRange(c, k0, k0 + keyDim);
      double qNorm = Math.sqrt(Arrays.stream(q).map(v -> v * v).sum() + 1e-6) * Math.sqrt(keyDim);
      double kNorm = Math.sqrt(Arrays.stream(k).map(v -> v * v).sum() + 1e-6);
      double gate = a[t * valueHeads + h] + dtBias[h];
      double decay = Math.exp(-Math.exp(aLog[h]) * Math.log1p(Math.exp(gate)));
      double beta = 1 / (1 + Math.exp(-b[t * valueHeads + h]));
      double[] o = new double[valueDim];
      double squares = 0;
      for (int j = 0; j < valueDim; j++) {
        double read = 0;
        for (int i = 0; i < keyDim; i++) {
          s[i][j] *= decay;
          read += s[i][j] * k[i] / kNorm;
        }
        double d = beta * (c[2 * keyHeads * keyDim + h * valueDim + j] - read);
        for (int i = 0; i < keyDim; i++) {
          s[i][j] += k[i] / kNorm * d;
          o[j] += s[i][j] * q[i] / qNorm;
        }
        squares += o[j] * o[j];
      }
      for (int j = 0; j < valueDim; j++) {
        int at = (t * valueHeads + h) * valueDim + j;
        double silu = z[at] / (1 + Math.exp(-z[at]));
        y[at] = o[j] / Math.sqrt(squares / valueDim + EPS) * gain[j] * silu;
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, 1, 1, 2, 3", "1, 1, 13, 7, 4, 5", "2, 4, 16, 16, 4, 9", "2, 2, 8, 24, 3, 6",
    "1, 3, 40, 48, 4, 6", "2, 4, 64, 64, 4, 5", "1, 2, 128, 128, 4, 4", "1, 1, 160, 200, 1, 3",
  })
  void scansAndStepsAsTheRecurrenceSays(
      int keyHeads, int valueHeads, int keyDim, int valueDim, int kernel, int rows) {
    Layer layer = new Layer(keyHeads, valueHeads, keyDim, valueDim, kernel, rows);
    double[] expected = layer.expected();
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      layer.kernels = Tools.kernels().inOrder(order);
      float[] y = layer.prefill(0, rows, layer.window(), layer.state());
      Data.assertClose(y, expected, Data.BF16);
      assertThat(y).isEqualTo(first == null ? y : first);
      first = y;
      MemorySegment window = layer.window();
      MemorySegment state = layer.state();
      int columns = valueHeads * valueDim;
      for (int r = 0; r < rows; r++) {
        double[] row = Arrays.copyOfRange(expected, r * columns, (r + 1) * columns);
        float[] step = layer.step(r, window, state);
        Data.assertClose(step, row, Data.BF16);
      }
    }
  }

  @Test
  void givesTheSameBitsWhereverThePrefillIsCut() {
    Layer layer = new Layer(2, 4, 16, 24, 4, 11);
    MemorySegment window = layer.window();
    MemorySegment state = layer.state();
    float[] whole = layer.prefill(0, 11, window, state);
    for (int[] cuts : new int[][] {{1, 2, 3}, {5}, {2, 10}}) {
      MemorySegment cutWindow = layer.window();
      MemorySegment cutState = layer.state();
      int from = 0;
      for (int i = 0; i <= cuts.length; i++) {
        int to = i < cuts.length ? cuts[i] : 11;
        int columns = 4 * 24;
        assertThat(layer.prefill(from, to, cutWindow, cutState))
            .isEqualTo(Arrays.copyOfRange(whole, from * columns, to * columns));
        from = to;
      }
      assertThat(cutWindow.mismatch(window)).isEqualTo(-1);
      assertThat(cutState.mismatch(state)).isEqualTo(-1);
    }
  }

  @Test
  void continuesAPrefillByStepsFromTheSameWindow() {
    Layer layer = new Layer(2, 4, 16, 16, 4, 6);
    double[] expected = layer.expected();
    MemorySegment window = layer.window();
    MemorySegment state = layer.state();
    layer.prefill(0, 2, window, state);
    for (int r = 2; r < 6; r++) {
      double[] row = Arrays.copyOfRange(expected, r * 64, (r + 1) * 64);
      Data.assertClose(layer.step(r, window, state), row, Data.BF16);
    }
  }
}
