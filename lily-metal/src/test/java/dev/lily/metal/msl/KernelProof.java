package dev.lily.metal.msl;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Checks every kernel that the 35B uses, at its shapes, against double precision.
 *
 * <p>Arguments: a scale, and families to leave it at (all if none). The seed of the random data is
 * a new one, or that of the environment's {@code LILY_SEED}.
 */
public final class KernelProof {
  /** What is checked: all that passes of the 35B dispatch, among others. */
  public static final Set<String> KERNELS =
      Set.of(
          "add_norm",
          "attention_decode_d256",
          "attention_merge",
          "attention_prefill_d256",
          "attention_prepare",
          "attention_tensor_d256",
          "clear_words",
          "copy_words",
          "delta_mix",
          "delta_norm",
          "delta_scan_k128",
          "delta_step_k128",
          "embed_q4_f32",
          "experts_combine",
          "experts_contract_q4",
          "experts_contract_tensor_q4",
          "experts_contract_tiles_q4",
          "experts_expand_q4",
          "experts_expand_tensor_q4",
          "experts_expand_tiles_q4",
          "experts_group",
          "experts_route",
          "gather_rows",
          "gemm_q4_bf16_m16",
          "gemm_q4_bf16_m32",
          "gemm_q4_bf16_m64",
          "gemm_q4_f32_m16",
          "gemm_q8_f32_m16",
          "gemm_q8_f32_m32",
          "gemm_q8_f32_m64",
          "gemm_tensor_q4_bf16",
          "gemm_tensor_q4_f32",
          "gemm_tensor_q8_f32",
          "matvec_q4_bf16_o1_r1",
          "matvec_q4_bf16_o2_r1",
          "matvec_q4_bf16_o2_r4",
          "matvec_q4_bf16_o2_r8",
          "matvec_q4_bf16_o4_r1",
          "matvec_q4_bf16_o4_r2",
          "matvec_q4_f32_o2_r4",
          "matvec_q4_f32_o2_r8",
          "matvec_q4_f32_o4_r1",
          "matvec_q4_f32_o4_r2",
          "matvec_q8_f32_o1_r1",
          "matvec_q8_f32_o2_r4",
          "matvec_q8_f32_o2_r8",
          "matvec_q8_f32_o4_r2",
          "norm_matvec_q4_bf16_o2",
          "norm_matvec_q4_bf16_o4",
          "norm_matvec_q4_f32_o4",
          "norm_matvec_q8_f32_o1",
          "sample_candidates",
          "sample_choose",
          "sample_raw_candidates",
          "sample_raw_weights",
          "sample_report");

  private KernelProof() {}

  public static void main(String[] arguments) {
    Proof.Scale scale = Proof.Scale.valueOf(arguments[0].toUpperCase(Locale.ROOT));
    String seed = System.getenv().getOrDefault("LILY_SEED", "");
    long chosen =
        seed.isEmpty() ? ThreadLocalRandom.current().nextLong(1L << 32) : Long.parseLong(seed);
    Proof proof = new Proof(Tools.kernels(), scale, chosen);
    System.out.println(proof.kernels().description());
    List<String> families = List.of(arguments).subList(1, arguments.length);
    long begin = System.nanoTime();
    run(proof, families);
    System.out.printf(
        Locale.ROOT,
        "checks: %d, failed: %d, %.1f s%n",
        proof.checks(),
        proof.failures().size(),
        (System.nanoTime() - begin) / 1e9);
    System.exit(proof.failures().isEmpty() ? 0 : 1);
  }

  /** Runs the families named, or all. */
  static void run(Proof proof, List<String> families) {
    Map<String, Runnable> all =
        Map.of(
            "elementwise", () -> new ElementwiseProof(proof).run(),
            "matmul", () -> new MatmulProof(proof).run(),
            "delta", () -> new DeltaRuleProof(proof).run(),
            "attention", () -> new AttentionProof(proof).run(),
            "experts", () -> new ExpertsProof(proof).run(),
            "sampling", () -> new SamplingProof(proof).run());
    List<String> wanted =
        families.isEmpty()
            ? List.of("elementwise", "matmul", "delta", "attention", "experts", "sampling")
            : families;
    for (String family : wanted) {
      Runnable part = all.get(family);
      if (part == null) {
        throw new IllegalArgumentException("No family " + family + "; there are " + all.keySet());
      }
      try {
        part.run();
      } catch (AssertionError e) {
        proof.fail(family, e);
      }
    }
  }
}
