package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.Tensor;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Residual addition, norm, and the choice of rows. */
abstract class RowContract {
  private final BackendContract contract;

  RowContract(BackendContract contract) {
    this.contract = contract;
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "13, 3", "64, 1", "64, 20", "100, 5", "4098, 2"})
  void addsTheBranchAndNormalizes(int columns, int rows) {
    Values random = new Values(columns);
    float[] x = random.uniform(rows * columns, -3, 3);
    float[] branch = random.uniform(rows * columns, -1, 1);
    check(x, branch, random.uniform(columns, -1.5, 1.5), columns, rows);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 13, 64, 100, 4098})
  void normalizesWithoutABranch(int columns) {
    Values random = new Values(columns);
    check(random.uniform(2 * columns, -3, 3), null, random.uniform(columns, 0, 2), columns, 2);
  }

  @Test
  void normalizesVeryLargeAndVerySmallRows() {
    Values random = new Values(3);
    float[] x = random.uniform(3 * 64, -1, 1);
    for (int i = 0; i < 64; i++) {
      x[i] = Math.scalb(x[i], 50);
      x[64 + i] = Math.scalb(x[64 + i], -30);
      x[128 + i] = 0;
    }
    check(x, null, random.uniform(64, 0.5, 1.5), 64, 3);
  }

  private void check(float[] x, float[] branch, float[] gain, int columns, int rows) {
    try (Rig rig = new Rig(contract.open())) {
      Tensor input = rig.tensor(columns);
      Tensor added = rig.tensor(columns);
      Tensor normalized = rig.tensor(columns);
      Tensor gains = rig.backend().constant(gain);
      rig.rows(rows);
      float[] n =
          rig.read(
              normalized,
              rows,
              pass -> {
                rig.fill(pass, x, input);
                if (branch != null) {
                  rig.fill(pass, branch, added);
                }
                pass.addNormalize(input, branch == null ? null : added, gains, 1e-6f, normalized);
              });
      float[] sum = rig.read(input, rows, pass -> {});
      for (int r = 0; r < rows; r++) {
        double[] expected = Close.doubles(x, r * columns, columns);
        for (int c = 0; branch != null && c < columns; c++) {
          expected[c] += branch[r * columns + c];
        }
        Close.all(
            Arrays.copyOfRange(sum, r * columns, (r + 1) * columns), expected, contract.epsilon());
        Close.all(
            Arrays.copyOfRange(n, r * columns, (r + 1) * columns),
            Oracle.rmsNorm(expected, gain, 1e-6f),
            8 * contract.epsilon());
      }
    }
  }

  @Test
  void gathersTheRowsThatNeedLogits() {
    try (Rig rig = new Rig(contract.open())) {
      Tensor x = rig.tensor(2);
      Tensor branch = rig.tensor(2);
      Tensor rows = rig.tensor(2);
      int[] tokens = {0, 1, 2, 3, 4, 5};
      rig.plan().clear();
      rig.plan().add(tokens, 0, 3, 0, new PageTable(), 0, 1, RowPlan.NO_SAMPLING);
      rig.plan().add(tokens, 3, 1, 0, new PageTable(), 1, 0, RowPlan.NO_SAMPLING);
      rig.plan().add(tokens, 4, 2, 0, new PageTable(), 2, 2, RowPlan.NO_SAMPLING);
      float[] gathered =
          rig.read(
              rows,
              3,
              pass -> {
                rig.fill(pass, new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, x);
                rig.fill(pass, new float[] {0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 5, 6}, branch);
                pass.gatherRows(x, branch, rows);
              });
      assertThat(gathered).containsExactly(5, 7, 11, 13, 15, 17);
    }
  }
}
