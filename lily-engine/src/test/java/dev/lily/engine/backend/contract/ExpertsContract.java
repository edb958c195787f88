package dev.lily.engine.backend.contract;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.DType;
import dev.lily.engine.backend.ExpertsOperands;
import dev.lily.engine.backend.ModelShape;
import dev.lily.engine.backend.contract.TestMatrix.Format;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Sparse experts: routing, routed and shared experts, and the weighted sum. */
abstract class ExpertsContract {
  private final BackendContract contract;

  ExpertsContract(BackendContract contract) {
    this.contract = contract;
  }

  /** One block of experts over random rows. */
  private final class Layer implements AutoCloseable {
    private final Oracle.Experts oracle;
    private final Rig rig;
    private final ExpertsOperands operands;
    private final int hidden;

    Layer(Oracle.Experts oracle) {
      this.oracle = oracle;
      hidden = oracle.down().rows();
      int numExperts = oracle.router().rows();
      ModelShape shape =
          new ModelShape(
              hidden,
              4,
              32,
              64,
              numExperts,
              oracle.numExpertsPerToken(),
              oracle.gate().rows(),
              oracle.sharedGate().rows(),
              100);
      rig = new Rig(contract.open(), Rig.LAYOUT, shape);
      operands =
          new ExpertsOperands(
              oracle.numExpertsPerToken(),
              rig.tensor(hidden),
              rig.load(oracle.router()),
              rig.load(oracle.gate()),
              rig.load(oracle.up()),
              rig.load(oracle.down()),
              rig.load(oracle.sharedGate()),
              rig.load(oracle.sharedUp()),
              rig.load(oracle.sharedDown()),
              rig.load(oracle.sharedExpertGate()),
              rig.tensor(numExperts),
              rig.tensor(hidden));
    }

    float[] run(float[] n) {
      int rows = n.length / hidden;
      rig.rows(rows);
      return rig.read(
          operands.out(),
          rows,
          pass -> {
            rig.fill(pass, n, operands.n());
            pass.experts(operands);
          });
    }

    void check(float[] n) {
      float[] actual = run(n);
      for (int r = 0; r < n.length / hidden; r++) {
        Close.all(
            Arrays.copyOfRange(actual, r * hidden, (r + 1) * hidden),
            oracle.run(Close.doubles(n, r * hidden, hidden)),
            64 * contract.epsilon());
      }
    }

    @Override
    public void close() {
      rig.close();
    }
  }

  private Layer layer(
      Values random,
      Format experts,
      Format router,
      int hidden,
      int numExperts,
      int k,
      int width,
      int sharedWidth) {
    return layer(
        random,
        TestMatrix.random(random, router, 1, numExperts, hidden, 0.5),
        experts,
        hidden,
        numExperts,
        k,
        width,
        sharedWidth);
  }

  private Layer layer(
      Values random,
      TestMatrix router,
      Format experts,
      int hidden,
      int numExperts,
      int k,
      int width,
      int sharedWidth) {
    return new Layer(
        new Oracle.Experts(
            k,
            router,
            TestMatrix.random(random, experts, numExperts, width, hidden, 0.3),
            TestMatrix.random(random, experts, numExperts, width, hidden, 0.3),
            TestMatrix.random(random, experts, numExperts, hidden, width, 0.3),
            TestMatrix.random(random, experts, 1, sharedWidth, hidden, 0.3),
            TestMatrix.random(random, experts, 1, sharedWidth, hidden, 0.3),
            TestMatrix.random(random, experts, 1, hidden, sharedWidth, 0.3),
            TestMatrix.random(random, Format.F32, 1, 1, hidden, 0.3)));
  }

  @ParameterizedTest
  @CsvSource({
    "AFFINE_4, AFFINE_8, 64, 8, 2, 64, 128, 1", "AFFINE_4, AFFINE_8, 128, 16, 4, 64, 64, 33",
    "AFFINE_4, AFFINE_8, 256, 5, 1, 192, 64, 64", "AFFINE_8, AFFINE_8, 64, 4, 4, 64, 64, 7",
    "BF16, BF16, 64, 8, 2, 32, 32, 20", "BF16, F32, 36, 6, 3, 20, 12, 9",
    "F32, F32, 13, 3, 2, 5, 7, 11", "F32, BF16, 100, 64, 8, 13, 40, 5",
  })
  void combinesExpertsOfEveryFormatAndSize(
      Format experts,
      Format router,
      int hidden,
      int numExperts,
      int k,
      int width,
      int sharedWidth,
      int rows) {
    Values random = new Values(hidden + rows);
    try (Layer layer = layer(random, experts, router, hidden, numExperts, k, width, sharedWidth)) {
      layer.check(random.uniform(rows * hidden, -2, 2));
    }
  }

  @Test
  void readsFusedStacksWithGapsBetweenTheirMatrices() {
    Values random = new Values(2);
    int hidden = 64;
    try (Layer layer =
        new Layer(
            new Oracle.Experts(
                2,
                TestMatrix.random(random, Format.F32, 1, 6, hidden, 0.5),
                TestMatrix.dense(
                    random.uniform(6 * 32 * hidden, -0.3, 0.3), 6, 32, hidden, DType.BF16, 32),
                TestMatrix.dense(
                    random.uniform(6 * 32 * hidden, -0.3, 0.3), 6, 32, hidden, DType.F32, 7),
                TestMatrix.random(random, Format.BF16, 6, hidden, 32, 0.3),
                TestMatrix.random(random, Format.BF16, 1, 32, hidden, 0.3),
                TestMatrix.random(random, Format.BF16, 1, 32, hidden, 0.3),
                TestMatrix.random(random, Format.BF16, 1, hidden, 32, 0.3),
                TestMatrix.random(random, Format.BF16, 1, 1, hidden, 0.3)))) {
      layer.check(random.uniform(10 * hidden, -2, 2));
    }
  }

  @Test
  void takesTheExpertsOfLowerIndexOnTies() {
    Values random = new Values(3);
    float[] router = new float[6 * 64];
    float[] liked = random.uniform(64, -0.5, 0.5);
    // Experts 1, 3 and 4 have equal logits for every row; 0, 2 and 5 too.
    for (int e = 0; e < 6; e++) {
      for (int c = 0; c < 64; c++) {
        router[e * 64 + c] = e == 1 || e == 3 || e == 4 ? liked[c] : -liked[c];
      }
    }
    try (Layer layer =
        layer(
            random,
            TestMatrix.dense(router, 1, 6, 64, DType.F32, 0),
            Format.AFFINE_4,
            64,
            6,
            2,
            64,
            64)) {
      layer.check(random.uniform(16 * 64, -2, 2));
    }
  }

  @Test
  void sendsEveryRowToOneExpertWhenTheRouterIsSure() {
    Values random = new Values(4);
    float[] router = new float[8 * 64];
    Arrays.fill(router, 5 * 64, 6 * 64, 100);
    try (Layer layer =
        layer(
            random,
            TestMatrix.dense(router, 1, 8, 64, DType.BF16, 0),
            Format.AFFINE_4,
            64,
            8,
            2,
            64,
            64)) {
      layer.check(random.uniform(64 * 64, 0.5, 2));
    }
  }

  @Test
  void givesARowTheSameBitsAloneAndAmongOthers() {
    Values random = new Values(5);
    try (Layer layer = layer(random, Format.AFFINE_4, Format.AFFINE_8, 128, 16, 4, 64, 128)) {
      float[] n = random.uniform(40 * 128, -2, 2);
      float[] together = layer.run(n);
      for (int r = 0; r < 40; r++) {
        assertThat(layer.run(Arrays.copyOfRange(n, r * 128, (r + 1) * 128)))
            .containsExactly(Arrays.copyOfRange(together, r * 128, (r + 1) * 128));
      }
    }
  }
}
