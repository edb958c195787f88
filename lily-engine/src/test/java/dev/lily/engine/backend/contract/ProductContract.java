package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.lily.engine.backend.BackendException;
import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.LogitsOperands;
import dev.lily.engine.backend.Matrix;
import dev.lily.engine.backend.MatrixSource;
import dev.lily.engine.backend.PageTable;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.backend.StackedProjection;
import dev.lily.engine.backend.Tensor;
import dev.lily.engine.backend.contract.TestMatrix.Format;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Embedding, projections and the model's head. */
abstract class ProductContract {
  private final BackendContract contract;

  ProductContract(BackendContract contract) {
    this.contract = contract;
  }

  private double tolerance(int columns) {
    return contract.epsilon() * (4 + Math.sqrt(columns));
  }

  @ParameterizedTest
  @EnumSource
  void embedsAnyRowOfAnyFormat(Format format) {
    try (Rig rig = new Rig(contract.open())) {
      TestMatrix embedding = TestMatrix.random(new Values(1), format, 1, 64, 192, 1);
      Matrix matrix = rig.load(embedding);
      Tensor x = rig.tensor(192);
      rig.plan().clear();
      rig.plan().add(new int[] {63, 0, 17}, 0, 3, 0, new PageTable(), 0, 0, RowPlan.NO_SAMPLING);
      float[] out = rig.read(x, 3, pass -> pass.embed(matrix, x));
      double[] expected = new double[3 * 192];
      System.arraycopy(embedding.values(), 63 * 192, expected, 0, 192);
      System.arraycopy(embedding.values(), 0, expected, 192, 192);
      System.arraycopy(embedding.values(), 17 * 192, expected, 2 * 192, 192);
      Close.all(out, expected, contract.epsilon());
    }
  }

  @Test
  void refusesATokenOutsideTheEmbedding() {
    try (Rig rig = new Rig(contract.open())) {
      Matrix matrix = rig.load(TestMatrix.rows(new float[64], 8));
      Tensor x = rig.tensor(8);
      rig.rows(9);
      assertThatThrownBy(() -> rig.run(pass -> pass.embed(matrix, x)))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("8");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "AFFINE_4, 64, 1, 1", "AFFINE_4, 64, 13, 2", "AFFINE_4, 2048, 100, 1", "AFFINE_4, 128, 64, 13",
    "AFFINE_4, 320, 100, 64", "AFFINE_8, 64, 13, 1", "AFFINE_8, 192, 100, 5", "AFFINE_8, 64, 1, 64",
    "BF16, 1, 1, 1", "BF16, 13, 100, 3", "BF16, 100, 13, 4", "BF16, 4098, 64, 2",
    "F32, 1, 13, 2", "F32, 13, 64, 7", "F32, 64, 100, 1", "F32, 4098, 13, 5",
  })
  void projectsEveryFormatAndSize(Format format, int columns, int outputs, int rows) {
    Values random = new Values(columns * 31L + rows);
    check(
        TestMatrix.random(random, format, 1, outputs, columns, 0.5),
        random.uniform(rows * columns, -2, 2),
        rows);
  }

  @ParameterizedTest
  @CsvSource({"32, 4", "32, 8", "64, 4", "96, 4", "128, 4", "128, 8"})
  void projectsEveryGroupSize(int groupSize, int bits) {
    Values random = new Values(groupSize + bits);
    int columns = 2 * 3 * groupSize;
    check(
        TestMatrix.affine(random, 1, 21, columns, groupSize, bits, 0.5),
        random.uniform(6 * columns, -2, 2),
        6);
  }

  @ParameterizedTest
  @EnumSource
  void projectsValuesOfVeryDifferentMagnitude(Format format) {
    Values random = new Values(5);
    check(TestMatrix.random(random, format, 1, 20, 256, 0x1p40), random.extreme(3 * 256, 40), 3);
    check(TestMatrix.random(random, format, 1, 20, 256, 0x1p-40), random.extreme(3 * 256, 40), 3);
  }

  private void check(TestMatrix weights, float[] x, int rows) {
    try (Rig rig = new Rig(contract.open())) {
      int columns = weights.columns();
      Matrix matrix = rig.load(weights);
      Tensor input = rig.tensor(columns);
      Tensor out = rig.tensor(weights.rows());
      rig.rows(rows);
      float[] actual =
          rig.read(
              out,
              rows,
              pass -> {
                rig.fill(pass, x, input);
                pass.project(input, matrix, out);
              });
      for (int r = 0; r < rows; r++) {
        double[] row = Close.doubles(x, r * columns, columns);
        Close.each(
            Arrays.copyOfRange(actual, r * weights.rows(), (r + 1) * weights.rows()),
            weights.multiply(0, row),
            weights.magnitude(0, row),
            tolerance(columns));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void givesARowTheSameBitsAloneAndAmongOthers(Format format) {
    try (Rig rig = new Rig(contract.open())) {
      Values random = new Values(7);
      Matrix matrix = rig.load(TestMatrix.random(random, format, 1, 77, 256, 0.5));
      float[] x = random.uniform(23 * 256, -2, 2);
      Tensor input = rig.tensor(256);
      Tensor out = rig.tensor(77);
      rig.rows(23);
      float[] together =
          rig.read(
              out,
              23,
              pass -> {
                rig.fill(pass, x, input);
                pass.project(input, matrix, out);
              });
      for (int r = 0; r < 23; r++) {
        float[] row = Arrays.copyOfRange(x, r * 256, (r + 1) * 256);
        rig.rows(1);
        float[] alone =
            rig.read(
                out,
                1,
                pass -> {
                  rig.fill(pass, row, input);
                  pass.project(input, matrix, out);
                });
        assertThat(alone).containsExactly(Arrays.copyOfRange(together, r * 77, (r + 1) * 77));
      }
    }
  }

  @Test
  void projectsAStackOfMatricesOfEveryFormatAtOnce() {
    try (Rig rig = new Rig(contract.open())) {
      Values random = new Values(8);
      List<TestMatrix> weights =
          List.of(
              TestMatrix.random(random, Format.AFFINE_4, 1, 100, 192, 0.5),
              TestMatrix.random(random, Format.AFFINE_8, 1, 1, 192, 0.5),
              TestMatrix.random(random, Format.BF16, 1, 13, 192, 0.5),
              TestMatrix.random(random, Format.F32, 1, 64, 192, 0.5));
      float[] x = random.uniform(11 * 192, -2, 2);
      Tensor input = rig.tensor(192);
      List<Tensor> outputs = weights.stream().map(w -> rig.tensor(w.rows())).toList();
      StackedProjection operands =
          new StackedProjection(input, weights.stream().map(rig::load).toList(), outputs);
      rig.rows(11);
      rig.run(
          pass -> {
            rig.fill(pass, x, input);
            pass.projectStack(operands);
          });
      for (int i = 0; i < weights.size(); i++) {
        TestMatrix w = weights.get(i);
        float[] actual = rig.read(outputs.get(i), 11, pass -> {});
        for (int r = 0; r < 11; r++) {
          double[] row = Close.doubles(x, r * 192, 192);
          Close.each(
              Arrays.copyOfRange(actual, r * w.rows(), (r + 1) * w.rows()),
              w.multiply(0, row),
              w.magnitude(0, row),
              tolerance(192));
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 9})
  void givesLogitsOfTheNormedRowsWithoutThePadding(int rows) {
    try (Rig rig = new Rig(contract.open())) {
      Values random = new Values(9);
      float[] weights = random.uniform(128 * 64, -0.5, 0.5);
      Arrays.fill(weights, 100 * 64, 128 * 64, Float.NaN);
      TestMatrix head = TestMatrix.dense(weights, 1, 128, 64, DType.BF16, 0);
      float[] gain = random.uniform(64, 0.5, 1.5);
      float[] x = random.uniform(rows * 64, -2, 2);
      Tensor input = rig.tensor(64);
      Tensor normalized = rig.tensor(64);
      Tensor logits = rig.tensor(100);
      LogitsOperands operands =
          new LogitsOperands(
              input, rig.backend().constant(gain), 1e-6f, rig.load(head), normalized, logits);
      rig.rows(rows);
      float[] actual =
          rig.read(
              logits,
              rows,
              pass -> {
                rig.fill(pass, x, input);
                pass.logits(operands);
              });
      for (int r = 0; r < rows; r++) {
        double[] n = Oracle.rmsNorm(Close.doubles(x, r * 64, 64), gain, 1e-6);
        Close.each(
            Arrays.copyOfRange(actual, r * 100, (r + 1) * 100),
            Arrays.copyOf(head.multiply(0, n), 100),
            Arrays.copyOf(head.magnitude(0, n), 100),
            tolerance(64));
      }
    }
  }

  @Test
  void refusesCodesOfAnotherWidth() {
    try (Rig rig = new Rig(contract.open())) {
      MemorySegment codes = MemorySegment.ofArray(new byte[64 * 2 / 8]);
      MemorySegment scales = MemorySegment.ofArray(new byte[2]);
      MatrixSource source =
          new MatrixSource.Affine("layers.3.up", 1, 1, 64, 64, 2, codes, scales, scales);
      assertThatThrownBy(() -> rig.backend().matrix(source))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("layers.3.up")
          .hasMessageContaining("2-bit");
    }
  }
}
