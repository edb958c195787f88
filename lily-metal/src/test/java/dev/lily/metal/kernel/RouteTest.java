package dev.lily.metal.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.metal.kernel.MatmulRoute.Gemm;
import dev.lily.metal.kernel.MatmulRoute.Matvec;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Routes at both sides of each edge. */
class RouteTest {
  @ParameterizedTest
  @CsvSource({
    "Q4, 1, 1, O1_R1", "Q4, 1, 1023, O1_R1", "Q4, 1, 1024, O2_R1", "Q4, 1, 4095, O2_R1",
    "Q4, 1, 4096, O4_R1", "Q8, 2, 8, O4_R2", "Q8, 3, 8, O2_R4", "Q8, 4, 9000, O2_R4",
    "Q4, 5, 8, O2_R8", "Q4, 64, 8, O2_R8", "BF16, 1, 9000, O1_R1", "BF16, 2, 1, O2_R8",
    "F32, 1, 1, O1_R1", "F32, 9, 1, O2_R8",
  })
  void takesDecodeProductsByRowsAndOutputs(
      WeightFormat format, int rows, int outputs, Matvec expected) {
    Matvec chosen = MatmulRoute.matvec(format, rows, outputs);
    assertThat(chosen).isEqualTo(expected);
    assertThat(chosen.exists(format)).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"1, M16", "16, M16", "17, M32", "32, M32", "33, M64", "2048, M64"})
  void takesLargerTilesForMoreRows(int rows, Gemm tile) {
    assertThat(MatmulRoute.gemm(WeightFormat.Q4, rows, false)).isEqualTo(tile);
    assertThat(MatmulRoute.gemm(WeightFormat.F32, rows, true)).isEqualTo(tile);
  }

  @ParameterizedTest
  @CsvSource({"Q4, true", "Q8, true", "BF16, false", "F32, false"})
  void takesTensorOperationsForEveryNumberOfRowsOrNone(WeightFormat format, boolean tensor) {
    for (int rows : new int[] {1, 16, 17, 64, 65, 4096}) {
      assertThat(MatmulRoute.gemm(format, rows, true) == Gemm.TENSOR).isEqualTo(tensor);
      assertThat(MatmulRoute.gemm(format, rows, false)).isNotEqualTo(Gemm.TENSOR);
    }
    assertThat(ExpertsRoute.expandTiles(format, true).contains("tensor")).isEqualTo(tensor);
    assertThat(ExpertsRoute.contractTiles(format, true).contains("tensor")).isEqualTo(tensor);
    assertThat(ExpertsRoute.expandTiles(format, false)).doesNotContain("tensor");
  }

  @Test
  void triesTensorOperationsWhereThereIsHardwareUnlessToldOtherwise() {
    assertThat(TensorOperations.AUTO.refusal(true)).isEmpty();
    assertThat(TensorOperations.AUTO.refusal(false))
        .hasValueSatisfying(why -> assertThat(why).contains("no hardware"));
    assertThat(TensorOperations.ALWAYS.refusal(false)).isEmpty();
    assertThat(TensorOperations.NEVER.refusal(true)).isPresent();
  }

  @ParameterizedTest
  @CsvSource({"8, 8, true", "256, 32, true", "4, 8, false", "8, 4, false", "13, 7, false"})
  void readsPagesOfWholeBlocksTileByTile(int headDim, int pageTokens, boolean tiled) {
    assertThat(AttentionRoute.isTiled(headDim, pageTokens)).isEqualTo(tiled);
  }

  @ParameterizedTest
  @CsvSource({"1, 64", "64, 64", "65, 128", "128, 128", "129, 256", "256, 256"})
  void takesTheNarrowestPrefillKernelThatHoldsAHead(int headDim, int width) {
    assertThat(AttentionRoute.PREFILL_WIDTHS.get(AttentionRoute.prefill(headDim))).isEqualTo(width);
  }

  @ParameterizedTest
  @CsvSource({"64, 32, true", "256, 64, true", "32, 32, false", "96, 32, false", "256, 16, false"})
  void attendsByTensorOperationsToPagesOfWholeTiles(int headDim, int pageTokens, boolean tensor) {
    assertThat(AttentionRoute.isTensor(headDim, pageTokens)).isEqualTo(tensor);
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "64, 1", "65, 2", "4032, 63", "4033, 64", "100000, 64"})
  void splitsTokensUpToAMost(int tokens, int splits) {
    assertThat(AttentionRoute.splits(tokens)).isEqualTo(splits);
  }

  @ParameterizedTest
  @CsvSource({"16, 2, 1", "16, 16, 1", "8, 1, 1", "9, 1, 2", "20, 1, 3"})
  void takesEightHeadsAtATime(int heads, int kvHeads, int blocks) {
    assertThat(AttentionRoute.blocks(heads, kvHeads)).isEqualTo(blocks);
  }

  @Test
  void fusesExpertsOfOneFormatThatFitThreadgroupMemory() {
    long bytes = ExpertsRoute.threadgroupBytes(512, 512, 8);
    assertThat(bytes).isEqualTo(9 * 512 * 9 / 4);
    assertThat(ExpertsRoute.isFused(true, 2048, 512, 512, 8, bytes)).isTrue();
    assertThat(ExpertsRoute.isFused(true, 2048, 512, 512, 8, bytes - 1)).isFalse();
    assertThat(ExpertsRoute.isFused(false, 2048, 512, 512, 8, bytes)).isFalse();
    assertThat(ExpertsRoute.isFused(true, 4096, 512, 512, 8, bytes)).isTrue();
    assertThat(ExpertsRoute.isFused(true, 4097, 512, 512, 8, bytes)).isFalse();
    assertThat(ExpertsRoute.threadgroupBytes(13, 7, 2)).isEqualTo(112);
  }

  @ParameterizedTest
  @CsvSource({"1, 256, 2", "64, 4, 5", "65, 4, 6", "16384, 256, 512"})
  void countsTheTilesThatGroupingMayNeed(int assignments, int experts, int tiles) {
    assertThat(ExpertsRoute.mostTiles(assignments, experts)).isEqualTo(tiles);
  }

  @Test
  void namesEveryKernelOnce() {
    assertThat(KernelLibrary.names()).doesNotHaveDuplicates().hasSizeGreaterThan(80);
  }
}
