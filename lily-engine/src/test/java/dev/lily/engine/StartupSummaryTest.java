package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class StartupSummaryTest {
  private static final long MIB = 1 << 20;

  @Test
  void showsThePlanAndWhatFits() {
    ModelInfo model =
        new ModelInfo(
            "model",
            "qwen3_5_moe",
            35_000_000_000L,
            18 * 1024 * MIB,
            32_768,
            "cpu",
            "A processor",
            "vector 256-bit, 8 threads",
            "cpu (A processor)",
            "bf16",
            List.of());
    // 20 KiB a token: 2,000 MiB are 102,400 tokens, so three full contexts and a bit.
    MemoryPlan plan =
        new MemoryPlan(
            18 * 1024 * MIB,
            2000 * MIB,
            20 * 1024,
            500 * MIB,
            1000 * MIB,
            1500 * MIB,
            90 * MIB,
            24 * 1024 * MIB,
            32_768,
            6);
    assertThat(StartupSummary.of(model, plan).lines())
        .containsExactly(
            "Lily is ready: model (qwen3_5_moe, 35.0 billion parameters, 18.0 GiB)",
            "  back end  cpu: A processor (vector 256-bit, 8 threads); cpu (A processor)",
            "  context   32768 tokens for each of up to 6 sessions",
            "  memory    21.5 GiB of 24.0 GiB",
            "    weights      18.0 GiB",
            "    KV cache      2.0 GiB  bf16, 20.0 KiB a token",
            "    states      500.0 MiB",
            "    snapshots  1000.0 MiB  1.5 GiB with their KV",
            "    scratch      90.0 MiB",
            "  fits      sessions × tokens at the same time: 1 × 32768, 2 × 32768, 4 × 25600, 6 × 17066");
  }
}
