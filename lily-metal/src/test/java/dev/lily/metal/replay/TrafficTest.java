package dev.lily.metal.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class TrafficTest {
  private static Traffic of(String dispatch, String... before) {
    String[] lines = new String[before.length + 1];
    System.arraycopy(before, 0, lines, 0, before.length);
    lines[before.length] = dispatch;
    return Traffic.of(Trace.of(lines));
  }

  /** Little-endian words in hexadecimal. */
  private static String words(int... values) {
    StringBuilder hex = new StringBuilder();
    for (int value : values) {
      hex.append("%08x".formatted(Integer.reverseBytes(value)));
    }
    return hex.toString();
  }

  private static String dispatch(String kernel, String groups, String bindings) {
    return "dispatch " + kernel + " " + groups + " 256 1 1 0" + bindings;
  }

  @Test
  void readsFourBitsAndAPairOfBf16PerGroupOfAMatrix() {
    // 2 matrices of 8 and 4 outputs over 128 columns: 12 x (64 bytes of codes + 2 groups x 4).
    // x: 128 bf16; results: 12 bf16.
    Traffic traffic =
        of(dispatch("matvec_q4_bf16_o2_r1", "2 1 1", " =" + words(128, 64, 8, 4, 0, 0, 1, 0, 0)));
    assertThat(traffic).isEqualTo(new Traffic(12 * 72, 0, 0, 256 + 24, 2 * 12 * 128));
  }

  @Test
  void countsTheNormInAProductThatNormsItsInput() {
    // 8 bits: 4 x (128 + 2 x 4). x, branch and gain in, x and n out: 128 x (4 + 2 + 4 + 4 + 2).
    // 4 fp32 results.
    Traffic traffic =
        of(dispatch("norm_matvec_q8_f32_o1", "1 1 1", " =" + words(128, 64, 4, 0, 0, 0, 1, 1, 0)));
    assertThat(traffic).isEqualTo(new Traffic(4 * 136, 0, 0, 128 * 16 + 16, 2 * 4 * 128));
  }

  @Test
  void readsAndWritesAStateOnce() {
    // 1 key head, 2 value heads of 4 keys and 8 values, 4 taps; 3 sequences.
    // State 2 x 8 x 4 fp32; window 2 x 3 x 16 bf16; both twice. Rows: 24 channels, z and y of 16, a
    // and b of 2, bf16. Constants: 24 x 4 taps, 2 x 2 of the gates, 8 gains, fp32.
    Traffic traffic =
        of(dispatch("delta_step_k128", "2 3 1", " =" + words(1, 2, 4, 8, 4, 192, 64, 0)));
    assertThat(traffic)
        .isEqualTo(
            new Traffic(0, 3 * 2 * (256 + 192), 0, 3 * (24 + 32 + 4) * 2 + (96 + 4 + 8) * 4, 0));
  }

  @Test
  void readsTheKeysAndValuesUpToTheRowsPosition() {
    // 4 heads over 2 of 8 dimensions; positions 99 and 0 stand in buffer 0 from byte 4 on.
    String buffers = " @1+0 @1+0 @1+0 @1+0 @1+0 @1+0 @0+4 @1+0 @1+0 @1+0 @1+0 @1+0";
    Traffic traffic =
        of(
            dispatch("attention_decode", "2 2 2", buffers + " =" + words(4, 2, 8, 4)),
            "buffer 0 16 data " + words(7, 99, 0, 7),
            "buffer 1 64 poison");
    // 101 tokens of 2 x 2 x 8 bf16. Queries of 32 and new keys and values of 32 bf16 for each row;
    // 2 splits and 1 of 4 heads of 8 sums and 2 statistics, fp32.
    assertThat(traffic)
        .isEqualTo(new Traffic(0, 0, 101 * 64, 2 * (64 + 64) + 3 * 4 * 10 * 4, 4 * 4 * 8 * 101));
  }

  @Test
  void readsTheChosenExpertsOnly() {
    // hidden 64, experts 32 wide, shared 16; 2 of 8.
    String parameters = " =" + words(64, 32, 16, 8, 2, 64, 32, 32, 64);
    // Gate and up: 2 x (2 x 32 + 16) rows of 32 bytes of codes + 4.
    assertThat(of(dispatch("experts_expand_q4", "2 3 1", parameters)).weights())
        .isEqualTo(2 * 80 * 36);
    String narrow = " =" + words(64, 64, 64, 8, 2, 64, 64, 64, 64);
    // Down: 3 x 64 rows of 32 bytes of codes + 4.
    assertThat(of(dispatch("experts_contract_q4", "4 1 1", narrow)).weights())
        .isEqualTo(3 * 64 * 36);
  }

  @Test
  void countsTheOperationsOfPrefillsProducts() {
    Traffic gemm = of(dispatch("gemm_q8_f32_m64", "1 1 1", " =" + words(128, 64, 10, 3)));
    assertThat(gemm).isEqualTo(new Traffic(10 * 136, 0, 0, 3 * 256 + 3 * 40, 2 * 3 * 10 * 128));
    // 10 rows after position 5 of one sequence: 15 tokens; row i sees 6 + i of them.
    Traffic attention =
        of(
            dispatch(
                "attention_prefill_d64",
                "1 2 1",
                " @1+0 @1+0 @0+0 @1+0 @1+0 @1+0 =" + words(4, 2, 8, 4)),
            "buffer 0 16 data " + words(0, 10, 0, 5),
            "buffer 1 64 poison");
    assertThat(attention.flops()).isEqualTo(4 * 4 * 8 * (10 * 6 + 45));
    assertThat(attention.cache()).isEqualTo(15 * 64);
  }

  @Test
  void readsTheCountsWhereASlotHasPenalties() {
    String slot = words(0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
    Traffic traffic =
        of(
            dispatch(
                "sample_candidates",
                "3 1 1",
                " @0+0 @1+0 @2+0 @0+0 @0+0 @0+0 @0+0 @0+0 @0+0 @0+0 =" + words(10_000, 3, 0, 0)),
            "buffer 0 64 poison",
            "buffer 1 16 data " + words(0, 0, 0, 0),
            "buffer 2 64 data " + slot);
    assertThat(traffic.other()).isEqualTo(10_000 * 8 + 60 * 8 + 3 * 4);
  }

  @Test
  void refusesAKernelThatItDoesNotKnow() {
    assertThatThrownBy(() -> of(dispatch("sort_all", "1 1 1", " =" + words(1))))
        .hasMessageContaining("sort_all");
  }
}
