package dev.lily.metal.msl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.msl.CpuKernels.Geometry;
import dev.lily.metal.msl.Weights.Format;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ExpertsKernelCpuRunTest {
  private static final class Layer {
    final int hidden;
    final int inner;
    final int sharedInner;
    final int experts;
    final int k;
    final int rows;
    final Format format;
    final float[] n;
    final float[] logits;
    final float[] sharedLogit;
    final Weights gate;
    final Weights up;
    final Weights down;
    final Weights sharedGate;
    final Weights sharedUp;
    final Weights sharedDown;
    CpuKernels kernels = Tools.kernels();

    Layer(Format format, int hidden, int inner, int sharedInner, int experts, int k, int rows) {
      this.format = format;
      this.hidden = hidden;
      this.inner = inner;
      this.sharedInner = sharedInner;
      this.experts = experts;
      this.k = k;
      this.rows = rows;
      Data data = new Data(hidden + inner);
      n = data.uniformBf16(rows * hidden, -2, 2);
      logits = data.uniform(rows * experts, -2, 2);
      sharedLogit = data.uniform(rows, -2, 2);
      gate = Weights.random(data, format, experts, inner, hidden, 32, 0.3);
      up = Weights.random(data, format, experts, inner, hidden, 32, 0.3);
      down = Weights.random(data, format, experts, hidden, inner, 32, 0.3);
      sharedGate = Weights.random(data, format, 1, sharedInner, hidden, 32, 0.3);
      sharedUp = Weights.random(data, format, 1, sharedInner, hidden, 32, 0.3);
      sharedDown = Weights.random(data, format, 1, hidden, sharedInner, 32, 0.3);
    }

    private MemorySegment parameters() {
      return Data.struct(hidden, inner, sharedInner, experts, k, 32, inner, inner, hidden);
    }

    float[] decode() {
      int actWidth = k * inner + sharedInner;
      MemorySegment act = Data.poisonedBf16(rows * actWidth);
      MemorySegment chosen = Data.poisoned(4L * rows * k);
      MemorySegment weights = Data.poisonedF32(rows * k);
      MemorySegment out = Data.poisonedBf16(rows * hidden);
      kernels.dispatch(
          "experts_expand_" + format.kernelName(),
          Geometry.of(Math.ceilDiv(Math.max(inner, sharedInner), 16), k + 1, rows, 256),
          gate.codes(),
          gate.scales(),
          gate.biases(),
          up.codes(),
          up.scales(),
          up.biases(),
          sharedGate.codes(),
          sharedGate.scales(),
          sharedGate.biases(),
          sharedUp.codes(),
          sharedUp.scales(),
          sharedUp.biases(),
          Data.f32(logits),
          Data.bf16(n),
          act,
          chosen,
          weights,
          parameters());
      int padded = k * Math.ceilDiv(inner, 16) * 16 + Math.ceilDiv(sharedInner, 16) * 16;
      kernels.dispatch(
          "experts_contract_" + format.kernelName(),
          Geometry.of(Math.ceilDiv(hidden, 16), rows, 1, 256)
              .withThreadgroupBytes(Math.ceilDiv(padded * 9 / 4, 16) * 16),
          down.codes(),
          down.scales(),
          down.biases(),
          sharedDown.codes(),
          sharedDown.scales(),
          sharedDown.biases(),
          act,
          chosen,
          weights,
          Data.f32(sharedLogit),
          out,
          parameters());
      return Data.readBf16(out);
    }

    float[] prefill() {
      return prefill("tiles");
    }

    /**
     * @param how {@code tiles} or {@code tensor}
     */
    float[] prefill(String how) {
      MemorySegment chosen = Data.poisoned(4L * rows * k);
      MemorySegment weights = Data.poisonedF32(rows * k);
      MemorySegment offsets = Data.poisoned(4L * (experts + 1));
      MemorySegment tiles = Data.poisoned(4L * (experts + 1));
      MemorySegment order = Data.poisoned(4L * rows * k);
      MemorySegment act = Data.poisonedBf16(rows * k * inner);
      MemorySegment contributions = Data.poisonedBf16(rows * k * hidden);
      MemorySegment sharedAct = Data.poisonedBf16(rows * sharedInner);
      MemorySegment shared = Data.poisonedBf16(rows * hidden);
      MemorySegment out = Data.poisonedBf16(rows * hidden);
      MemorySegment route = Data.struct(experts, k, rows * k);
      String name = format.kernelName();
      int mostTiles = Math.ceilDiv(rows * k, 64) + Math.min(experts, rows * k);
      kernels.dispatch(
          "experts_route", Geometry.of(rows, 256), Data.f32(logits), chosen, weights, route);
      kernels.dispatch("experts_group", Geometry.of(1, 1024), chosen, offsets, tiles, order, route);
      kernels.dispatch(
          "experts_expand_%s_%s".formatted(how, name),
          Geometry.of(Math.ceilDiv(inner, 32), mostTiles, 1, 128),
          gate.codes(),
          gate.scales(),
          gate.biases(),
          up.codes(),
          up.scales(),
          up.biases(),
          Data.bf16(n),
          offsets,
          tiles,
          order,
          act,
          Data.struct(hidden, 32, inner, rows * k, experts, k, inner, inner));
      kernels.dispatch(
          "experts_contract_%s_%s".formatted(how, name),
          Geometry.of(Math.ceilDiv(hidden, 64), mostTiles, 1, 128),
          down.codes(),
          down.scales(),
          down.biases(),
          act,
          offsets,
          tiles,
          order,
          contributions,
          Data.struct(inner, 32, hidden, rows * k, experts, k, hidden, 0));
      MemorySegment none = Data.unused();
      kernels.dispatch(
          "experts_expand_%s_%s".formatted(how, name),
          Geometry.of(Math.ceilDiv(sharedInner, 32), Math.ceilDiv(rows, 64), 1, 128),
          sharedGate.codes(),
          sharedGate.scales(),
          sharedGate.biases(),
          sharedUp.codes(),
          sharedUp.scales(),
          sharedUp.biases(),
          Data.bf16(n),
          none,
          none,
          none,
          sharedAct,
          Data.struct(hidden, 32, sharedInner, rows, 0, 1, 0, 0));
      kernels.dispatch(
          "experts_contract_%s_%s".formatted(how, name),
          Geometry.of(Math.ceilDiv(hidden, 64), Math.ceilDiv(rows, 64), 1, 128),
          sharedDown.codes(),
          sharedDown.scales(),
          sharedDown.biases(),
          sharedAct,
          none,
          none,
          none,
          shared,
          Data.struct(sharedInner, 32, hidden, rows, 0, 1, 0, 0));
      kernels.dispatch(
          "experts_combine",
          Geometry.of(Math.ceilDiv(hidden, 256), rows, 1, 256),
          contributions,
          weights,
          shared,
          Data.f32(sharedLogit),
          out,
          Data.struct(hidden, k));
      return Data.readBf16(out);
    }

    double[] expected() {
      double[] out = new double[rows * hidden];
      for (int r = 0; r < rows; r++) {
        double[] x = new double[hidden];
        for (int c = 0; c < hidden; c++) {
          x[c] = n[r * hidden + c];
        }
        boolean[] taken = new boolean[experts];
        int[] chosen = new int[k];
        double sum = 0;
        for (int rank = 0; rank < k; rank++) {
          int best = -1;
          for (int e = 0; e < experts; e++) {
            if (!taken[e] && (best < 0 || logits[r * experts + e] > logits[r * experts + best])) {
              best = e;
            }
          }
          taken[best] = true;
          chosen[rank] = best;
          sum += Math.exp(logits[r * experts + best]);
        }
        for (int e : chosen) {
          add(out, r, Math.exp(logits[r * experts + e]) / sum, expert(gate, up, down, e, x));
        }
        double share = 1 / (1 + Math.exp(-sharedLogit[r]));
        add(out, r, share, expert(sharedGate, sharedUp, sharedDown, 0, x));
      }
      return out;
    }

    private void add(double[] out, int row, double weight, double[] x) {
      for (int c = 0; c < hidden; c++) {
        out[row * hidden + c] += weight * x[c];
      }
    }

    private static double[] expert(Weights gate, Weights up, Weights down, int e, double[] x) {
      double[] g = gate.multiply(e, x);
      double[] u = up.multiply(e, x);
      for (int i = 0; i < g.length; i++) {
        g[i] = g[i] / (1 + Math.exp(-g[i])) * u[i];
      }
      return down.multiply(e, g);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "Q4, 64, 32, 64, 8, 2, 5", "Q4, 256, 64, 128, 16, 4, 3", "Q8, 128, 32, 32, 5, 3, 2",
    "BF16, 64, 16, 32, 6, 2, 4", "F32, 40, 13, 7, 6, 2, 3", "Q4, 576, 544, 32, 3, 3, 1",
  })
  void combinesTheChosenExpertsAndTheSharedOne(
      Format format, int hidden, int inner, int sharedInner, int experts, int k, int rows) {
    Layer layer = new Layer(format, hidden, inner, sharedInner, experts, k, rows);
    double[] expected = layer.expected();
    float[] decoded = null;
    float[] prefilled = null;
    for (int order : CpuKernels.ORDERS) {
      layer.kernels = Tools.kernels().inOrder(order);
      float[] d = layer.decode();
      Data.assertClose(d, expected, 2 * Data.BF16);
      assertThat(d).isEqualTo(decoded == null ? d : decoded);
      decoded = d;
      float[] p = layer.prefill();
      Data.assertClose(p, expected, 4 * Data.BF16);
      assertThat(p).isEqualTo(prefilled == null ? p : prefilled);
      prefilled = p;
    }
  }

  @ParameterizedTest
  @CsvSource({
    "Q4, 64, 32, 64, 8, 2, 5",
    "Q4, 256, 96, 128, 4, 2, 70",
    "Q8, 128, 32, 32, 5, 3, 20",
  })
  void combinesTheExpertsByTensorOperations(
      Format format, int hidden, int inner, int sharedInner, int experts, int k, int rows) {
    Layer layer = new Layer(format, hidden, inner, sharedInner, experts, k, rows);
    float[] first = null;
    for (int order : CpuKernels.ORDERS) {
      layer.kernels = Tools.kernels().inOrder(order);
      float[] p = layer.prefill("tensor");
      Data.assertClose(p, layer.expected(), 4 * Data.BF16);
      assertThat(p).isEqualTo(first == null ? p : first);
      first = p;
    }
  }

  @Test
  void groupsManyRowsThatAllWantTheSameExperts() {
    Layer layer = new Layer(Format.BF16, 16, 8, 8, 4, 2, 70);
    for (int r = 0; r < layer.rows; r++) {
      System.arraycopy(new float[] {0, 3, 3, 1}, 0, layer.logits, r * 4, 4);
    }
    Data.assertClose(layer.prefill(), layer.expected(), 4 * Data.BF16);
  }

  @Test
  void choosesExpertsWithoutGoingAstrayWhenLogitsAreNaN() {
    Layer layer = new Layer(Format.BF16, 16, 8, 8, 4, 2, 2);
    Arrays.fill(layer.logits, Float.NaN);
    assertThat(layer.decode()).containsOnly(Float.NaN);
  }
}
