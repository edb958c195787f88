package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.GatedDeltaOperands;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StateLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Gated DeltaNet: the values, and the state it leaves behind, seen through later rows. */
abstract class GatedDeltaContract {
  private static final float EPS = 1e-6f;

  private final BackendContract contract;

  GatedDeltaContract(BackendContract contract) {
    this.contract = contract;
  }

  /** One layer over random rows, run in pieces. */
  private final class Layer implements AutoCloseable {
    private final Oracle.Delta oracle;
    private final Rig rig;
    private final GatedDeltaOperands operands;
    private final float[] qkv;
    private final float[] z;
    private final float[] a;
    private final float[] b;

    Layer(Oracle.Delta oracle, int layer, float[] qkv, float[] z, float[] a, float[] b) {
      this.oracle = oracle;
      this.qkv = qkv;
      this.z = z;
      this.a = a;
      this.b = b;
      int valueColumns = oracle.valueHeads() * oracle.valueDim();
      StateLayout layout =
          new StateLayout(
              0,
              2,
              32,
              16,
              0,
              2,
              oracle.kernel(),
              oracle.channels(),
              oracle.valueHeads(),
              oracle.keyDim(),
              oracle.valueDim(),
              8,
              0,
              100);
      rig = new Rig(contract.open(), layout, Rig.SHAPE);
      operands =
          new GatedDeltaOperands(
              layer,
              oracle.keyHeads(),
              oracle.valueHeads(),
              oracle.keyDim(),
              oracle.valueDim(),
              oracle.kernel(),
              rig.tensor(oracle.channels()),
              rig.tensor(valueColumns),
              rig.tensor(oracle.valueHeads()),
              rig.tensor(oracle.valueHeads()),
              rig.backend().constant(oracle.conv()),
              rig.backend().constant(oracle.aLog()),
              rig.backend().constant(oracle.dtBias()),
              rig.backend().constant(oracle.gain()),
              EPS,
              rig.tensor(valueColumns));
    }

    int numRows() {
      return b.length / oracle.valueHeads();
    }

    int width() {
      return oracle.valueHeads() * oracle.valueDim();
    }

    /** Rows {@code from} to {@code to} of the input as the next rows of the sequence in a slot. */
    float[] run(int slot, int from, int to) {
      rig.rows(to - from);
      RowPlan plan = rig.plan();
      plan.clear();
      int[] tokens = new int[to - from];
      Arrays.setAll(tokens, i -> from + i);
      plan.add(tokens, 0, to - from, from, new PageTable(), slot, 0, RowPlan.NO_SAMPLING);
      return read();
    }

    float[] read() {
      return rig.read(
          operands.y(),
          rig.plan().numRows(),
          pass -> {
            rig.fill(pass, qkv, operands.qkv());
            rig.fill(pass, z, operands.z());
            rig.fill(pass, a, operands.a());
            rig.fill(pass, b, operands.b());
            pass.gatedDelta(operands);
          });
    }

    double[] expected() {
      return oracle.run(
          rows(qkv, oracle.channels()),
          rows(z, width()),
          rows(a, oracle.valueHeads()),
          rows(b, oracle.valueHeads()));
    }

    @Override
    public void close() {
      rig.close();
    }
  }

  private static List<double[]> rows(float[] values, int columns) {
    List<double[]> rows = new ArrayList<>();
    for (int i = 0; i < values.length; i += columns) {
      rows.add(Close.doubles(values, i, columns));
    }
    return rows;
  }

  private Layer layer(
      int keyHeads, int valueHeads, int keyDim, int valueDim, int kernel, int numRows) {
    return layer(keyHeads, valueHeads, keyDim, valueDim, kernel, numRows, 1, -4, 4);
  }

  private Layer layer(
      int keyHeads,
      int valueHeads,
      int keyDim,
      int valueDim,
      int kernel,
      int numRows,
      double inputs,
      double minGate,
      double maxGate) {
    Values random = new Values(keyHeads * 100L + valueDim + numRows);
    int channels = 2 * keyHeads * keyDim + valueHeads * valueDim;
    Oracle.Delta oracle =
        new Oracle.Delta(
            keyHeads,
            valueHeads,
            keyDim,
            valueDim,
            kernel,
            random.uniform(channels * kernel, -1, 1),
            random.uniform(valueHeads, -2, 2),
            random.uniform(valueHeads, -1, 1),
            random.uniform(valueDim, 0.5, 1.5),
            EPS);
    return new Layer(
        oracle,
        1,
        random.uniform(numRows * channels, -inputs, inputs),
        random.uniform(numRows * valueHeads * valueDim, -3, 3),
        random.uniform(numRows * valueHeads, minGate, maxGate),
        random.uniform(numRows * valueHeads, -3, 3));
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, 1, 1, 2, 3",
    "1, 1, 13, 7, 4, 5",
    "2, 4, 16, 16, 4, 37",
    "2, 2, 8, 24, 3, 20",
    "1, 3, 40, 48, 4, 18",
    "2, 4, 64, 64, 4, 33",
    "1, 2, 128, 128, 4, 40",
  })
  void advancesEveryShape(
      int keyHeads, int valueHeads, int keyDim, int valueDim, int kernel, int numRows) {
    try (Layer layer = layer(keyHeads, valueHeads, keyDim, valueDim, kernel, numRows)) {
      layer.rig.state().clearSlot(0);
      Close.all(layer.run(0, 0, numRows), layer.expected(), 64 * contract.epsilon());
    }
  }

  @Test
  void keepsAStateThatNeverDecaysAndOneThatForgetsAtOnce() {
    for (double gate : new double[] {-60, 60}) {
      try (Layer layer = layer(1, 2, 16, 16, 4, 24, 1, gate - 1, gate + 1)) {
        layer.rig.state().clearSlot(0);
        Close.all(layer.run(0, 0, 24), layer.expected(), 256 * contract.epsilon());
      }
    }
  }

  @Test
  void staysFiniteForRowsOfZeros() {
    try (Layer layer = layer(1, 2, 16, 16, 4, 12, 1e-30, -1, 1)) {
      Arrays.fill(layer.qkv, 0);
      layer.rig.state().clearSlot(0);
      for (float y : layer.run(0, 0, 12)) {
        assertThat(y).isZero();
      }
    }
  }

  @Test
  void givesTheSameBitsWhereverTheRowsAreCut() {
    try (Layer layer = layer(2, 4, 16, 32, 4, 36)) {
      layer.rig.state().clearSlot(0);
      float[] whole = layer.run(0, 0, 36);
      for (int cut = 1; cut < 36; cut++) {
        layer.rig.state().clearSlot(1);
        assertThat(layer.run(1, 0, cut)).containsExactly(Arrays.copyOf(whole, cut * layer.width()));
        assertThat(layer.run(1, cut, 36))
            .containsExactly(Arrays.copyOfRange(whole, cut * layer.width(), whole.length));
      }
      layer.rig.state().clearSlot(2);
      for (int r = 0; r < 36; r++) {
        assertThat(layer.run(2, r, r + 1))
            .containsExactly(Arrays.copyOfRange(whole, r * layer.width(), (r + 1) * layer.width()));
      }
    }
  }

  @Test
  void keepsTheSequencesOfAPlanApart() {
    try (Layer layer = layer(2, 4, 16, 16, 4, 30)) {
      float[][] alone = new float[3][];
      for (int s = 0; s < 3; s++) {
        layer.rig.state().clearSlot(s);
        alone[s] = layer.run(s, s * 10, s * 10 + 7 + s);
        layer.rig.state().clearSlot(s);
      }
      RowPlan plan = layer.rig.plan();
      plan.clear();
      int[] tokens = new int[30];
      Arrays.setAll(tokens, i -> i);
      for (int s = 0; s < 3; s++) {
        plan.add(tokens, s * 10, 7 + s, 0, new PageTable(), 2 - s, 0, RowPlan.NO_SAMPLING);
      }
      float[] together = layer.read();
      int at = 0;
      for (int s = 0; s < 3; s++) {
        assertThat(Arrays.copyOfRange(together, at, at + alone[s].length))
            .containsExactly(alone[s]);
        at += alone[s].length;
      }
    }
  }

  @Test
  void continuesFromACopiedSlot() {
    try (Layer layer = layer(2, 4, 16, 16, 4, 30)) {
      layer.rig.state().clearSlot(0);
      layer.run(0, 0, 11);
      layer.rig.state().copySlot(0, 5);
      float[] left = layer.run(0, 11, 30);
      layer.rig.state().copySlot(5, 3);
      assertThat(layer.run(3, 11, 30)).containsExactly(left);
      assertThat(layer.run(5, 11, 30)).containsExactly(left);
    }
  }
}
