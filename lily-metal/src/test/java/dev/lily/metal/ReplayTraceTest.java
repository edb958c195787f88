package dev.lily.metal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.lily.engine.backend.BackendOptions;
import dev.lily.engine.backend.PassLimits;
import dev.lily.engine.backend.RowPlan;
import dev.lily.engine.sampling.SamplingOptions;
import dev.lily.engine.sampling.SamplingParameters;
import dev.lily.metal.device.MetalDouble;
import dev.lily.metal.device.MetalDoubleExtension;
import dev.lily.metal.msl.KernelProof;
import dev.lily.metal.msl.KernelSignatures;
import dev.lily.metal.msl.MslToolchain;
import dev.lily.metal.replay.ReplayFile;
import dev.lily.metal.replay.Trace;
import dev.lily.metal.replay.Traffic;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Records passes of Qwen3.6-35B-A3B to {@code target/replay}, where the replay on an NVIDIA GPU
 * finds them, and checks what they must move against the model's own numbers.
 */
@ExtendWith(MetalDoubleExtension.class)
class ReplayTraceTest {
  private static final Path OUTPUT = Path.of("target", "replay");
  private static final long CACHE_BYTES_OF_TOKEN = 20_480;

  /**
   * So long that a pass is one command buffer: the double traces the plan as the first one sees it.
   */
  private static final BackendOptions WHOLE_PASSES =
      new BackendOptions(0, "auto", Duration.ofHours(1), "auto");

  @TempDir private Path temporary;

  private Trace record(MetalDouble metal, String name, int rows, int position, boolean isDecode) {
    metal.useKernels();
    metal.set("run", 0);
    PassLimits limits = new PassLimits(rows, 1, 1, position + rows);
    Path raw = OUTPUT.resolve(name + ".raw");
    assertThat(OUTPUT.toFile().isDirectory() || OUTPUT.toFile().mkdirs()).isTrue();
    try (Model35b model = new Model35b(WHOLE_PASSES, limits, temporary.resolve(name))) {
      SamplingOptions options =
          SamplingOptions.builder().temperature(0.7).topK(20).topP(0.8).build();
      model.state().beginSampling(0, SamplingParameters.of(options, 35, -1), new int[0]);
      RowPlan plan = model.plan();
      if (isDecode) {
        model.addDecode(plan, 0, position);
      } else {
        model.addPrefill(plan, 0, position, rows);
      }
      metal.trace(raw, () -> model.record(plan).await());
    }
    Trace trace = Trace.read(raw);
    ReplayFile.write(
        trace,
        KernelSignatures.read(MslToolchain.find().orElseThrow()),
        OUTPUT.resolve(name + ".trace"));
    assertThat(raw.toFile().delete()).isTrue();
    assertThat(KernelProof.KERNELS).containsAll(kernels(trace).keySet());
    return trace;
  }

  private static Map<String, Long> kernels(Trace trace) {
    return trace.dispatches().stream()
        .collect(
            Collectors.groupingBy(Trace.Dispatch::kernel, TreeMap::new, Collectors.counting()));
  }

  @Test
  void recordsADecodeTokenThatMovesWhatTheModelMust(MetalDouble metal) {
    for (int context : new int[] {1024, 32_768}) {
      Trace trace = record(metal, "decode-" + context, 1, context - 1, true);
      Traffic traffic = Traffic.of(trace);
      System.out.printf(
          "A decode token of the 35B after %d tokens: %d dispatches, %d barriers; %,d bytes of weights, %,d of states, %,d of keys and values, %,d of activations%n",
          context,
          trace.dispatches().size(),
          trace.numBarriers(),
          traffic.weights(),
          traffic.states(),
          traffic.cache(),
          traffic.other());
      assertThat(traffic.weights()).isBetween(1_660_000_000L, 1_675_000_000L);
      // 30 layers of 32 heads of 128 x 128 fp32, and windows of 3 inputs of 12,288 bf16 channels.
      assertThat(traffic.states()).isEqualTo(2L * 30 * (32 * 128 * 128 * 4 + 3 * 12_288 * 2));
      assertThat(traffic.cache()).isEqualTo(context * CACHE_BYTES_OF_TOKEN);
      assertThat(traffic.other()).isLessThan(60_000_000);
      assertThat(kernels(trace)).containsEntry("delta_step_k128", 30L);
    }
  }

  @ParameterizedTest
  @CsvSource({"1009, ''", "1010, -tensor"})
  void recordsPrefillsThatMultiplyWhatTheModelMust(int family, String suffix, MetalDouble metal) {
    metal.set("family", family);
    for (int rows : new int[] {512, 2048}) {
      Trace trace = record(metal, "prefill-" + rows + suffix, rows, 0, false);
      Traffic traffic = Traffic.of(trace);
      System.out.printf(
          "A prefill of %d tokens of the 35B by %s: %d dispatches, %d barriers; %,d bytes, %.2f TFLOP%n",
          rows,
          suffix.isEmpty() ? "simdgroup_matrix" : "tensor operations",
          trace.dispatches().size(),
          trace.numBarriers(),
          traffic.bytes(),
          traffic.flops() * 1e-12);
      // 2.45 G active weights without the two vocabulary matrices, 2 operations each.
      double ofToken = (double) traffic.flops() / rows;
      assertThat(ofToken).isBetween(4.8e9, 5.4e9);
      // Every expert of every layer is read.
      assertThat(traffic.weights()).isBetween(18_900_000_000L, 19_700_000_000L);
    }
  }
}
